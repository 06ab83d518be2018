use std::io::Read as _;
use std::path::Path;

use toolwarden_model::document::{Document, DocumentError, DocumentErrorKind};
use toolwarden_model::json::{decode_utf8, parse};

use crate::{FileError, open};

/// Reads the text of a file of at most `most` bytes; reads no more than that from a longer file.
///
/// # Errors
/// The file cannot be read, is too large, or is not UTF-8 text.
pub fn read_text(path: &Path, most: u64) -> Result<String, FileError> {
    let failed = |source| FileError::Read {
        path: path.to_owned(),
        source,
    };
    let file = open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(failed)?;
    if bytes.len() as u64 > most {
        let path = path.to_owned();
        return Err(FileError::TooLarge { path, most });
    }
    decode_text(&bytes, path).map(str::to_owned)
}

/// Decodes bytes as text; errors name the path.
///
/// # Errors
/// The bytes are not UTF-8.
pub fn decode_text<'b>(bytes: &'b [u8], path: &Path) -> Result<&'b str, FileError> {
    decode_utf8(bytes).map_err(|source| FileError::NotText {
        path: path.to_owned(),
        source,
    })
}

/// Parses a text, keeping the positions of its values; errors name the path. A file that is called `.json` is
/// reported in the words of JSON.
///
/// # Errors
/// The text is neither YAML nor JSON.
pub fn parse_document(text: &str, path: &Path) -> Result<Document, FileError> {
    let failed = |source| FileError::Document {
        path: path.to_owned(),
        source,
    };
    let error = match Document::read(text) {
        Ok(document) => return Ok(document),
        Err(error) => error,
    };
    let is_json = path.extension().is_some_and(|it| it == "json");
    match (error.kind, parse(text)) {
        (DocumentErrorKind::Syntax { .. }, Err(error)) if is_json => Err(failed(DocumentError {
            position: error.position,
            kind: DocumentErrorKind::Syntax {
                message: format!("not JSON: {}", error.kind),
            },
        })),
        (kind, _) => Err(failed(DocumentError {
            position: error.position,
            kind,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_json_are_reported_in_the_words_of_json() {
        let told = |text: &str, name: &str| {
            parse_document(text, Path::new(name))
                .map(|document| document.value.to_string())
                .map_err(|error| error.full_message())
        };
        let json = told("{bad", "a.json").unwrap_err();
        assert!(json.starts_with("a.json:1:2: not JSON: "), "{json}");
        let yaml = told("{bad", "a.yaml").unwrap_err();
        assert!(yaml.starts_with("a.yaml:2:1: "), "{yaml}");
        assert!(!yaml.contains("JSON"), "{yaml}");
        // YAML in a file called `.json` is still read.
        assert_eq!(told("a: 1\n", "a.json"), Ok(r#"{"a":1}"#.to_owned()));
    }

    #[test]
    fn errors_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it.yaml");
        let shown = path.display().to_string();
        let told = |most| read_text(&path, most).map_err(|error| error.full_message());

        let gone = read_text(&path, 9).unwrap_err();
        assert!(gone.is_not_found());
        assert_eq!(gone.to_string(), format!("cannot read {shown}"));
        assert!(
            gone.full_message()
                .starts_with(&format!("cannot read {shown}: "))
        );

        std::fs::write(&path, "a: 1\n").unwrap();
        assert_eq!(told(5), Ok("a: 1\n".to_owned()));
        assert_eq!(told(4), Err(format!("{shown} is larger than 0 MiB")));

        std::fs::write(&path, b"a: \xff\n").unwrap();
        let error = told(9).unwrap_err();
        assert!(error.starts_with(&format!("{shown}: ")), "{error}");

        let error = parse_document("a: [", &path).unwrap_err();
        assert!(!error.is_not_found());
        let place = format!("{shown}:2:1: ");
        assert!(
            error.full_message().starts_with(&place),
            "{}",
            error.full_message()
        );
    }
}
