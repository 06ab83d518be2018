use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Everything the checks look at.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) crates: Vec<Crate>,
    pub(crate) files: Vec<SourceFile>,
    /// The Markdown files at the root and under `docs/`.
    pub(crate) documents: Vec<SourceFile>,
    /// What cargo says about every package of the lock file.
    pub(crate) packages: Vec<Value>,
}

/// A crate of ours.
pub(crate) struct Crate {
    /// Its folder, such as `core/model`.
    pub(crate) folder: String,
    pub(crate) manifest: toml::Table,
}

/// A file of Rust or Markdown.
pub(crate) struct SourceFile {
    /// Its path from the root.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    fn read(root: &Path, path: &Path) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            path: path.strip_prefix(root)?.to_string_lossy().into_owned(),
            text: std::fs::read_to_string(path)?,
        })
    }
}

impl Workspace {
    pub(crate) fn read() -> Result<Self, Box<dyn Error>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .canonicalize()?;
        let mut crates = Vec::new();
        let mut files = Vec::new();
        for folder in crate_folders(&root)? {
            let manifest = std::fs::read_to_string(root.join(&folder).join("Cargo.toml"))?;
            collect_files(&root, &root.join(&folder), "rs", &mut files)?;
            crates.push(Crate {
                folder,
                manifest: manifest.parse()?,
            });
        }
        let mut documents = Vec::new();
        collect_files(&root, &root.join("docs"), "md", &mut documents)?;
        for entry in std::fs::read_dir(&root)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(SourceFile::read(&root, &path)?);
            }
        }
        let metadata = Command::new(env!("CARGO"))
            .current_dir(&root)
            .args(["metadata", "--format-version", "1", "--locked"])
            .output()?;
        let metadata: Value = serde_json::from_slice(&metadata.stdout)?;
        let packages = metadata
            .get("packages")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        Ok(Self {
            root,
            crates,
            files,
            documents,
            packages,
        })
    }
}

fn crate_folders(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut folders = Vec::new();
    for group in ["core", "shell", "."] {
        let Ok(entries) = std::fs::read_dir(root.join(group)) else {
            continue;
        };
        for entry in entries {
            let path = entry?.path();
            if path.join("Cargo.toml").is_file() {
                let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
                folders.push(name);
            }
        }
    }
    folders.sort();
    Ok(folders)
}

fn collect_files(
    root: &Path,
    folder: &Path,
    extension: &str,
    files: &mut Vec<SourceFile>,
) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_files(root, &path, extension, files)?;
        } else if path.extension().is_some_and(|it| it == extension) {
            files.push(SourceFile::read(root, &path)?);
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(())
}
