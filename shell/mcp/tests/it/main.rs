//! The client against fixture servers and real servers, as real processes on real sockets.

// `cfg(test)` is always true here; it tells clippy that helpers are test code as well.
#[cfg(test)]
mod connection;
#[cfg(test)]
mod connection_http;
#[cfg(test)]
mod connection_stdio;
#[cfg(test)]
mod http;
#[cfg(test)]
mod lifetime;
#[cfg(test)]
mod real;
#[cfg(test)]
mod stdio;
#[cfg(test)]
mod support;
