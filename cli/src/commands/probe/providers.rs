use serde_json::{Value, json};
use toolwarden_probe::{Provider, fixture, presets};

use crate::args::{PlainFormat, ProvidersArgs};
use crate::command_outcome::CommandOutcome;
use crate::error::CliError;
use crate::output::print_text;
use crate::style;

pub(super) fn run(args: &ProvidersArgs) -> Result<CommandOutcome, CliError> {
    let told = match args.format {
        PlainFormat::Text => text(),
        PlainFormat::Json => {
            let providers: Vec<Value> = presets().iter().map(entry).collect();
            let schema = "toolwarden/probe/providers/v1";
            format!("{:#}\n", json!({"schema": schema, "providers": providers}))
        }
    };
    print_text(&told)?;
    Ok(CommandOutcome::Pass)
}

/// The variable the key is taken from, if one is set; never the key.
fn key_variable(provider: &Provider) -> Option<&str> {
    let is_set = |name: &&String| std::env::var(name).is_ok_and(|it| !it.is_empty());
    provider.key_env.iter().find(is_set).map(String::as_str)
}

fn text() -> String {
    let (good, dim) = (style::SUCCESS, style::DIM);
    let width = |of: fn(&Provider) -> &str| presets().iter().map(|it| of(it).len()).max();
    let names = width(|it| &it.name).unwrap_or(0);
    let models = width(|it| &it.model_id).unwrap_or(0);
    let mut out = String::new();
    for it in presets() {
        let key = match (key_variable(it), it.key_env.as_slice()) {
            (Some(name), _) => format!("{good}${name} is set{good:#}"),
            (None, []) => "needs no key".to_owned(),
            (None, names) => {
                let names: Vec<String> = names.iter().map(|it| format!("${it}")).collect();
                format!("{dim}set {}{dim:#}", names.join(" or "))
            }
        };
        let (name, model, wire) = (&it.name, &it.model_id, it.wire.as_str());
        out.push_str(&format!(
            "{name:<names$}  {model:<models$}  {wire:<16}  {key}\n"
        ));
    }
    out
}

fn entry(provider: &Provider) -> Value {
    json!({
        "name": provider.name,
        "base_url": provider.base_url,
        "model_id": provider.model_id,
        "wire": provider.wire.as_str(),
        "key_env": provider.key_env,
        "key_set": key_variable(provider),
        "verified_on": provider.verified_on,
        "notes": provider.notes,
        "fixture": fixture(&provider.name).is_some(),
    })
}
