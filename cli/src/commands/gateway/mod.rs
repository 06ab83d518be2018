//! The gateway and what belongs to it.

mod alerts;
mod config;
mod config_check;
mod demo;
mod explain;
mod import_client;
mod key;
mod load;
mod process;
mod serve;
mod wrap;

pub(super) use alerts::run as alerts;
pub(super) use config::run as config;
pub(super) use demo::run as demo;
pub(super) use demo::serve_shop as demo_server;
pub(super) use explain::run as explain;
pub(super) use import_client::run as import;
pub(super) use key::run as key;
pub(super) use load::load_settings;
pub(super) use process::run_reaper;
pub(super) use serve::run as serve;
pub(super) use wrap::run as wrap;
