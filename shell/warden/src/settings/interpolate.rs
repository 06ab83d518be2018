//! Puts in what texts refer to: `${NAME}`, `${NAME:-default}`, `${file:path}`; `$$` is a dollar.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::Pointer;

use super::problem::MASK;
use super::secrets::PutIn;

/// The largest file that a reference can name.
const MAX_FILE: u64 = 1 << 20;

/// Why a reference is none, or leads to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidReference {
    /// A variable of the environment is not set.
    #[error("the environment variable `{name}` is not set")]
    Unset {
        /// The variable.
        name: String,
    },
    /// A variable of the environment is empty.
    #[error("the environment variable `{name}` is empty")]
    Empty {
        /// The variable.
        name: String,
    },
    /// A file cannot be read.
    #[error("cannot read the file `{path}`: {cause}")]
    Unreadable {
        /// The file as written.
        path: String,
        /// Why, in the words of the system.
        cause: String,
    },
    /// A file has nothing in it.
    #[error("the file `{path}` is empty")]
    EmptyFile {
        /// The file as written.
        path: String,
    },
    /// A reference has no end.
    #[error("`${{` has no `}}`; write `$${{` for the characters themselves")]
    Unclosed,
    /// A reference says something else.
    #[error(
        "`${{{text}}}` is no reference; write ${{NAME}}, ${{NAME:-default}} or ${{file:path}}, or \
         `$$` for a dollar"
    )]
    Unknown {
        /// What stands between the braces.
        text: String,
    },
}

/// Whose variables and files are referred to.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'e> {
    /// Looks up a variable.
    pub(super) variable: &'e dyn Fn(&str) -> Option<String>,
    /// Where paths of files start.
    pub(super) folder: &'e Path,
}

/// What came of putting in.
#[derive(Default)]
pub(super) struct Interpolated {
    /// The texts that referred to something, with the mask in place of what was put in.
    pub(super) shown: BTreeMap<Pointer, String>,
    /// What was put in, and where.
    pub(super) values: Vec<(Pointer, PutIn)>,
    /// The files that were read.
    pub(super) files: Vec<PathBuf>,
    /// What leads nowhere.
    pub(super) mistakes: Vec<(Pointer, InvalidReference)>,
}

/// Puts in what the texts of a value refer to, where `keeps` does not say that they stay as written.
pub(super) fn interpolate(
    surroundings: Surroundings<'_>,
    value: &mut Value,
    keeps: &dyn Fn(&Pointer, &Value) -> bool,
) -> Interpolated {
    let mut out = Interpolated::default();
    walk(surroundings, value, &Pointer::root(), keeps, &mut out);
    out
}

fn walk(
    surroundings: Surroundings<'_>,
    value: &mut Value,
    at: &Pointer,
    keeps: &dyn Fn(&Pointer, &Value) -> bool,
    out: &mut Interpolated,
) {
    if keeps(at, value) {
        return;
    }
    match value {
        Value::String(text) => match resolve(surroundings, text) {
            Ok(resolved) => {
                if let Some(shown) = resolved.shown {
                    out.shown.insert(at.clone(), shown);
                }
                let values = resolved.values.into_iter().map(|it| (at.clone(), it));
                out.values.extend(values);
                out.files.extend(resolved.files);
                *text = resolved.text;
            }
            Err(mistake) => out.mistakes.push((at.clone(), mistake)),
        },
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(surroundings, item, &at.index(index), keeps, out);
            }
        }
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                walk(surroundings, value, &at.child(key), keeps, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text with everything put in.
#[derive(Debug, Default, PartialEq, Eq)]
struct Resolved {
    text: String,
    /// The text to show, where it referred to something.
    shown: Option<String>,
    files: Vec<PathBuf>,
    /// What was put in; defaults are written in the text, and are not among it.
    values: Vec<PutIn>,
}

fn resolve(surroundings: Surroundings<'_>, written: &str) -> Result<Resolved, InvalidReference> {
    let mut text = String::new();
    let mut shown = String::new();
    let mut files = Vec::new();
    let mut values = Vec::new();
    let mut refers = false;
    let mut rest = written;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        shown.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            text.push('$');
            shown.push_str("$$");
            rest = after;
        } else if let Some(after) = after.strip_prefix('{') {
            let (reference, after) = after.split_once('}').ok_or(InvalidReference::Unclosed)?;
            text.push_str(&look_up(surroundings, reference, &mut files, &mut values)?);
            shown.push_str(MASK);
            refers = true;
            rest = after;
        } else {
            text.push('$');
            shown.push('$');
            rest = after;
        }
    }
    text.push_str(rest);
    shown.push_str(rest);
    Ok(Resolved {
        text,
        shown: refers.then_some(shown),
        files,
        values,
    })
}

fn look_up(
    surroundings: Surroundings<'_>,
    reference: &str,
    files: &mut Vec<PathBuf>,
    values: &mut Vec<PutIn>,
) -> Result<String, InvalidReference> {
    if let Some(path) = reference.strip_prefix("file:") {
        let file = surroundings.folder.join(path);
        let text = read_file(path, &file)?;
        files.push(file);
        values.push(PutIn {
            variable: None,
            value: text.clone(),
        });
        return Ok(text);
    }
    let variable = reference.strip_prefix("env:").unwrap_or(reference);
    let (name, default) = match variable.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (variable, None),
    };
    if !is_variable_name(name) {
        let text = reference.to_owned();
        return Err(InvalidReference::Unknown { text });
    }
    let set = (surroundings.variable)(name);
    let value = set.clone().filter(|value| !is_nothing(value));
    values.extend(value.clone().map(|value| PutIn {
        variable: Some(name.to_owned()),
        value,
    }));
    let value = value.or_else(|| default.map(ToOwned::to_owned));
    // A secret that is nothing would open what it should close.
    value.filter(|value| !is_nothing(value)).ok_or_else(|| {
        let name = name.to_owned();
        match set.is_some() || default.is_some() {
            true => InvalidReference::Empty { name },
            false => InvalidReference::Unset { name },
        }
    })
}

/// Whether a variable of the environment can be called so.
pub(super) fn is_variable_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit())
}

fn is_nothing(text: &str) -> bool {
    text.trim().is_empty()
}

fn read_file(written: &str, file: &Path) -> Result<String, InvalidReference> {
    let unreadable = |cause: String| InvalidReference::Unreadable {
        path: written.to_owned(),
        cause,
    };
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(unreadable(format!("larger than {} MiB", MAX_FILE >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable("not UTF-8 text".to_owned()))?;
    // Editors and `echo` end a file with a line break that is no part of the secret.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if is_nothing(text) {
        let path = written.to_owned();
        return Err(InvalidReference::EmptyFile { path });
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folder: &Path, written: &str) -> Result<(String, Option<String>), String> {
        let variable = |name: &str| match name {
            "A" => Some("one".to_owned()),
            "_B2" => Some("two $A".to_owned()),
            "EMPTY" => Some(String::new()),
            "BLANK" => Some(" \n".to_owned()),
            _ => None,
        };
        let surroundings = Surroundings {
            variable: &variable,
            folder,
        };
        let resolved = resolve(surroundings, written).map_err(|error| error.to_string())?;
        Ok((resolved.text, resolved.shown))
    }

    #[test]
    fn references_are_put_in_and_dollars_stay() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "s3cret\n").unwrap();
        std::fs::write(folder.path().join("lines"), "a\r\nb\r\n").unwrap();
        let cases = [
            ("plain", "plain", None),
            ("${A}", "one", Some("***")),
            ("x${A}y${A}", "xoneyone", Some("x***y***")),
            // What was put in is not looked at again.
            ("${_B2}", "two $A", Some("***")),
            ("${NONE:-d:-e}", "d:-e", Some("***")),
            ("${EMPTY:-d}", "d", Some("***")),
            ("${A:-d}", "one", Some("***")),
            ("${env:A}", "one", Some("***")),
            ("Bearer ${file:secret}", "Bearer s3cret", Some("Bearer ***")),
            ("${file:lines}", "a\r\nb", Some("***")),
            ("$$", "$", None),
            ("$${A}", "${A}", None),
            ("$$${A}", "$one", Some("$$***")),
            ("a$b$", "a$b$", None),
            ("^[a-z]+$", "^[a-z]+$", None),
        ];
        for (written, text, shown) in cases {
            let expected = (text.to_owned(), shown.map(str::to_owned));
            assert_eq!(check(folder.path(), written), Ok(expected), "{written}");
        }
    }

    #[test]
    fn nothing_is_never_put_in() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("empty"), "\n").unwrap();
        std::fs::write(folder.path().join("binary"), [0xff, 0xfe]).unwrap();
        let no_reference = "write ${NAME}, ${NAME:-default} or ${file:path}, or `$$` for a dollar";
        let cases = [
            ("${NONE}", "the environment variable `NONE` is not set"),
            ("${EMPTY}", "the environment variable `EMPTY` is empty"),
            ("${BLANK}", "the environment variable `BLANK` is empty"),
            ("${NONE:-}", "the environment variable `NONE` is empty"),
            ("${file:empty}", "the file `empty` is empty"),
            (
                "${file:binary}",
                "cannot read the file `binary`: not UTF-8 text",
            ),
            (
                "${file:none}",
                "cannot read the file `none`: No such file or directory (os error 2)",
            ),
            (
                "${A",
                "`${` has no `}`; write `$${` for the characters themselves",
            ),
            ("${}", &format!("`${{}}` is no reference; {no_reference}")),
            (
                "${input:token}",
                &format!("`${{input:token}}` is no reference; {no_reference}"),
            ),
        ];
        for (written, error) in cases {
            let told = check(folder.path(), written);
            assert_eq!(told, Err(error.to_owned()), "{written}");
        }
    }
}
