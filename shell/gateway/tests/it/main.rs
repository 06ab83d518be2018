//! The gateway over real sockets, with real servers behind it.

// `cfg(test)` is always true here; it tells clippy that helpers are test code as well.
#[cfg(test)]
mod api;
#[cfg(test)]
mod callers;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod conformance_bar;
#[cfg(test)]
mod eras;
#[cfg(test)]
mod guarding;
#[cfg(test)]
mod honest_peers;
#[cfg(test)]
mod hostile_peers;
#[cfg(test)]
mod multiplex;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod real;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod smoke;
#[cfg(test)]
mod support;
#[cfg(test)]
mod transparent;
