//! The crate against files that users write and a provider on real sockets.

// `cfg(test)` is always true here; it tells clippy that helpers are test code as well.
#[cfg(test)]
mod bad_replies;
#[cfg(test)]
mod client_sdks;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod compressed;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod drafts;
#[cfg(test)]
mod exchanges;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod misbehaviours;
#[cfg(test)]
mod quirks;
#[cfg(test)]
mod replays;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod splits;
#[cfg(test)]
mod support;
#[cfg(test)]
mod turns;
