//! The REST API over a real socket; every response is checked against the OpenAPI document.

mod callers;
mod decisions;
mod document;
mod drift;
mod explaining;
mod fixture;
mod operating;
mod requests;
mod skipped_approval;
mod tools;
