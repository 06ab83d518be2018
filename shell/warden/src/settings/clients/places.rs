use std::path::{Path, PathBuf};

use super::Client;

/// An operating system, as far as clients keep their files elsewhere on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Os {
    /// Linux and its like.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Os {
    /// The one this program was built for.
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

/// Where a client keeps its servers on this system: the files of the folder one works in first, as
/// relative paths, then those of the user.
#[must_use]
pub fn places(client: Client, home: &Path) -> Vec<PathBuf> {
    places_on(Os::of_build(), client, home)
}

/// As [`places`], on any system.
#[must_use]
pub fn places_on(os: Os, client: Client, home: &Path) -> Vec<PathBuf> {
    let applications = match os {
        Os::Linux => home.join(".config"),
        Os::MacOs => home.join("Library").join("Application Support"),
        Os::Windows => home.join("AppData").join("Roaming"),
    };
    match client {
        Client::ClaudeDesktop => {
            let folder = applications.join("Claude");
            vec![folder.join("claude_desktop_config.json")]
        }
        Client::ClaudeCode => vec![PathBuf::from(".mcp.json"), home.join(".claude.json")],
        Client::Cursor => {
            let file = Path::new(".cursor").join("mcp.json");
            vec![file.clone(), home.join(file)]
        }
        Client::VsCode => {
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
                Client::ClaudeDesktop,
                vec!["h/.config/Claude/claude_desktop_config.json"],
            ),
            (
                Os::MacOs,
                Client::ClaudeDesktop,
                vec!["h/Library/Application Support/Claude/claude_desktop_config.json"],
            ),
            (
                Os::Windows,
                Client::ClaudeDesktop,
                vec!["h/AppData/Roaming/Claude/claude_desktop_config.json"],
            ),
            (
                Os::Linux,
                Client::ClaudeCode,
                vec![".mcp.json", "h/.claude.json"],
            ),
            (
                Os::Linux,
                Client::Cursor,
                vec![".cursor/mcp.json", "h/.cursor/mcp.json"],
            ),
            (
                Os::Linux,
                Client::VsCode,
                vec![
                    ".vscode/mcp.json",
                    "h/.config/Code/User/mcp.json",
                    "h/.config/Code/User/settings.json",
                ],
            ),
            (
                Os::MacOs,
                Client::VsCode,
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
                places_on(os, client, Path::new("h")),
                files,
                "{os:?} {client:?}"
            );
        }
    }
}
