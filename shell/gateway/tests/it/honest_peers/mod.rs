//! Published clients use published servers, directly and behind one gateway, and observe the same.
//!
//! Each client takes the steps in `fixtures/peers/plan.json` and prints one document of observations.
//! The documents are compared as a whole.

mod compare;
mod inspector;
mod rmcp;
mod scripts;
mod servers;
