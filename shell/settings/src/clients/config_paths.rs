use std::path::{Path, PathBuf};

use super::ClientApp;

/// An operating system, as far as it affects the location of client files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Os {
    /// Linux and similar systems.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Os {
    /// The operating system this program was built for.
    #[must_use]
    pub const fn of_build() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

/// Where a client keeps its servers on this system: first the files of the working folder, as relative
/// paths, then those of the user.
#[must_use]
pub fn config_paths(client: ClientApp, home: &Path) -> Vec<PathBuf> {
    config_paths_on(Os::of_build(), client, home)
}

/// Like [`config_paths`], for any system.
#[must_use]
pub fn config_paths_on(os: Os, client: ClientApp, home: &Path) -> Vec<PathBuf> {
    let applications = match os {
        Os::Linux => home.join(".config"),
        Os::MacOs => home.join("Library").join("Application Support"),
        Os::Windows => home.join("AppData").join("Roaming"),
    };
    match client {
        ClientApp::ClaudeDesktop => {
            let folder = applications.join("Claude");
            vec![folder.join("claude_desktop_config.json")]
        }
        ClientApp::ClaudeCode => vec![PathBuf::from(".mcp.json"), home.join(".claude.json")],
        ClientApp::Cursor => {
            let file = Path::new(".cursor").join("mcp.json");
            vec![file.clone(), home.join(file)]
        }
        ClientApp::VsCode => {
            let folder = applications.join("Code").join("User");
            vec![
                Path::new(".vscode").join("mcp.json"),
                folder.join("mcp.json"),
                folder.join("settings.json"),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_on_every_system() {
        let cases = [
            (
                Os::Linux,
                ClientApp::ClaudeDesktop,
                vec!["h/.config/Claude/claude_desktop_config.json"],
            ),
            (
                Os::MacOs,
                ClientApp::ClaudeDesktop,
                vec!["h/Library/Application Support/Claude/claude_desktop_config.json"],
            ),
            (
                Os::Windows,
                ClientApp::ClaudeDesktop,
                vec!["h/AppData/Roaming/Claude/claude_desktop_config.json"],
            ),
            (
                Os::Linux,
                ClientApp::ClaudeCode,
                vec![".mcp.json", "h/.claude.json"],
            ),
            (
                Os::Linux,
                ClientApp::Cursor,
                vec![".cursor/mcp.json", "h/.cursor/mcp.json"],
            ),
            (
                Os::Linux,
                ClientApp::VsCode,
                vec![
                    ".vscode/mcp.json",
                    "h/.config/Code/User/mcp.json",
                    "h/.config/Code/User/settings.json",
                ],
            ),
            (
                Os::MacOs,
                ClientApp::VsCode,
                vec![
                    ".vscode/mcp.json",
                    "h/Library/Application Support/Code/User/mcp.json",
                    "h/Library/Application Support/Code/User/settings.json",
                ],
            ),
        ];
        for (os, client, files) in cases {
            let files: Vec<PathBuf> = files.into_iter().map(PathBuf::from).collect();
            assert_eq!(
                config_paths_on(os, client, Path::new("h")),
                files,
                "{os:?} {client:?}"
            );
        }
    }
}
