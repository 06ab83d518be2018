//! Several servers behind one gateway, and what befalls them.

mod life;
mod names;
mod others;
mod pages;
mod tasks;
mod tokens;
