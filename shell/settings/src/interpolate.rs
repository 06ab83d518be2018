//! Expands the references in texts: `${NAME}`, `${NAME:-default}`, `${file:path}`; `$$` is a dollar sign.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::Pointer;

use super::mask::MASK;
use super::secrets::ResolvedReference;

/// The maximum size of a referenced file.
const MAX_FILE: u64 = 1 << 20;

/// Why a reference is invalid or cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidReference {
    /// An environment variable is not set.
    #[error("the environment variable `{name}` is not set")]
    Unset {
        /// The variable.
        name: String,
    },
    /// An environment variable is empty.
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
        /// The system's error message.
        cause: String,
    },
    /// A file is empty.
    #[error("the file `{path}` is empty")]
    EmptyFile {
        /// The file as written.
        path: String,
    },
    /// A reference is not closed.
    #[error("`${{` has no `}}`; write `$${{` for the characters themselves")]
    Unclosed,
    /// A reference has an unknown form.
    #[error(
        "`${{{text}}}` is not a reference; write ${{NAME}}, ${{NAME:-default}} or ${{file:path}}, or \
         `$$` for a dollar"
    )]
    Unknown {
        /// The text between the braces.
        text: String,
    },
}

/// The source of variables and files.
#[derive(Clone, Copy)]
pub(super) struct InterpolationContext<'e> {
    /// Looks up a variable.
    pub(super) variable: &'e dyn Fn(&str) -> Option<String>,
    /// The folder that file paths are relative to.
    pub(super) folder: &'e Path,
}

/// The result of the expansion.
#[derive(Default)]
pub(super) struct Interpolation {
    /// The texts that contained references, with the mask in place of expanded values.
    pub(super) masked_texts: BTreeMap<Pointer, String>,
    /// The expanded values, with their places.
    pub(super) values: Vec<(Pointer, ResolvedReference)>,
    /// The files that were read.
    pub(super) files: Vec<PathBuf>,
    /// References that cannot be resolved.
    pub(super) errors: Vec<(Pointer, InvalidReference)>,
}

/// Expands the references in the texts of a value, except where `keeps` returns true.
pub(super) fn interpolate(
    context: InterpolationContext<'_>,
    value: &mut Value,
    keeps: &dyn Fn(&Pointer, &Value) -> bool,
) -> Interpolation {
    let mut out = Interpolation::default();
    walk(context, value, &Pointer::root(), keeps, &mut out);
    out
}

fn walk(
    context: InterpolationContext<'_>,
    value: &mut Value,
    at: &Pointer,
    keeps: &dyn Fn(&Pointer, &Value) -> bool,
    out: &mut Interpolation,
) {
    if keeps(at, value) {
        return;
    }
    match value {
        Value::String(text) => match resolve(context, text) {
            Ok(resolved) => {
                if let Some(shown) = resolved.shown {
                    out.masked_texts.insert(at.clone(), shown);
                }
                let values = resolved.values.into_iter().map(|it| (at.clone(), it));
                out.values.extend(values);
                out.files.extend(resolved.files);
                *text = resolved.text;
            }
            Err(mistake) => out.errors.push((at.clone(), mistake)),
        },
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(context, item, &at.index(index), keeps, out);
            }
        }
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                walk(context, value, &at.child(key), keeps, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// An expanded text.
#[derive(Debug, Default, PartialEq, Eq)]
struct ResolvedText {
    text: String,
    /// The text to show, if it contained a reference.
    shown: Option<String>,
    files: Vec<PathBuf>,
    /// The expanded values; defaults are written in the text and are not included.
    values: Vec<ResolvedReference>,
}

fn resolve(
    context: InterpolationContext<'_>,
    written: &str,
) -> Result<ResolvedText, InvalidReference> {
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
            text.push_str(&resolve_reference(
                context,
                reference,
                &mut files,
                &mut values,
            )?);
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
    Ok(ResolvedText {
        text,
        shown: refers.then_some(shown),
        files,
        values,
    })
}

fn resolve_reference(
    context: InterpolationContext<'_>,
    reference: &str,
    files: &mut Vec<PathBuf>,
    values: &mut Vec<ResolvedReference>,
) -> Result<String, InvalidReference> {
    if let Some(path) = reference.strip_prefix("file:") {
        let file = context.folder.join(path);
        let text = read_file(path, &file)?;
        files.push(file);
        values.push(ResolvedReference {
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
    let set = (context.variable)(name);
    let value = set.clone().filter(|value| !is_blank(value));
    values.extend(value.clone().map(|value| ResolvedReference {
        variable: Some(name.to_owned()),
        value,
    }));
    let value = value.or_else(|| default.map(ToOwned::to_owned));
    // An empty secret would grant access that it should prevent.
    value.filter(|value| !is_blank(value)).ok_or_else(|| {
        let name = name.to_owned();
        match set.is_some() || default.is_some() {
            true => InvalidReference::Empty { name },
            false => InvalidReference::Unset { name },
        }
    })
}

/// Whether this is a valid name of an environment variable.
pub(super) fn is_variable_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit())
}

fn is_blank(text: &str) -> bool {
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
    // Editors and `echo` end a file with a line break that is not part of the secret.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if is_blank(text) {
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
        let context = InterpolationContext {
            variable: &variable,
            folder,
        };
        let resolved = resolve(context, written).map_err(|error| error.to_string())?;
        Ok((resolved.text, resolved.shown))
    }

    #[test]
    fn references_are_expanded_and_dollars_stay() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "s3cret\n").unwrap();
        std::fs::write(folder.path().join("lines"), "a\r\nb\r\n").unwrap();
        let cases = [
            ("plain", "plain", None),
            ("${A}", "one", Some("***")),
            ("x${A}y${A}", "xoneyone", Some("x***y***")),
            // Expanded values are not expanded again.
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
    fn empty_values_are_rejected() {
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
            (
                "${}",
                &format!("`${{}}` is not a reference; {no_reference}"),
            ),
            (
                "${input:token}",
                &format!("`${{input:token}}` is not a reference; {no_reference}"),
            ),
        ];
        for (written, error) in cases {
            let told = check(folder.path(), written);
            assert_eq!(told, Err(error.to_owned()), "{written}");
        }
    }
}
