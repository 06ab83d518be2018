mod errors;
mod masking;
mod reading;
mod reload;
mod table;

use std::path::Path;

use super::{LoadedSettings, Settings, SettingsError};

/// Settings with every key.
const FULL: &str = include_str!("full.yaml");

fn variable(name: &str) -> Option<String> {
    let value = match name {
        "GITHUB_TOKEN" => "ghp_github",
        "DOCS_TOKEN" => "docs-token",
        "CI_KEY" => "a-key-of-the-build-machine",
        "JWT_SECRET" => "0123456789abcdef0123456789abcdef",
        "HOOK_SECRET" => "hook-secret",
        "SLACK_PATH" => "T0/B0/slack-secret",
        "MAIL_PASSWORD" => "mail-password",
        "COUNT" => "7",
        "PORT" => "9000",
        "SHARE" => "0.25",
        "TRUTH" => "true",
        "LINE" => "two\nlines",
        "EMPTY" => "",
        _ => return None,
    };
    Some(value.to_owned())
}

fn load(text: &str) -> Result<LoadedSettings, SettingsError> {
    Settings::of_text(text, Path::new("etc/toolwarden.yaml"), &variable)
}

/// The settings of a text that has no mistakes.
fn read(text: &str) -> Settings {
    match load(text) {
        Ok(loaded) => loaded.settings,
        Err(error) => panic!("{error}"),
    }
}
