//! The REST API over a real socket, every answer held to the OpenAPI document.

mod callers;
mod decisions;
mod document;
mod drift;
mod explaining;
mod operating;
mod requests;
mod site;
mod skipped_approval;
mod tools;
