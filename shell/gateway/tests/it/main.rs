//! The gateway over real sockets, with real servers behind it.

// `cfg(test)` is always true here; it tells clippy that helpers are test code as well.
#[cfg(test)]
mod api;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod eras;
#[cfg(test)]
mod guarding;
#[cfg(test)]
mod multiplex;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod real;
#[cfg(test)]
mod smoke;
#[cfg(test)]
mod support;
