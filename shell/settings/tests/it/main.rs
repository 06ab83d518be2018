//! The promises of the settings.

mod settings_document;
