use std::io::Read as _;
use std::path::Path;

use toolwarden_model::document::Document;
use toolwarden_model::json::decode_utf8;

use crate::{FileError, open};

/// The text of a file of at most so many bytes; no more is read of a longer one.
///
/// # Errors
/// It cannot be read, is too large, or no text.
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
    as_text(&bytes, path).map(str::to_owned)
}

/// Bytes as a text; errors name the path as that of the file.
///
/// # Errors
/// They are none.
pub fn as_text<'b>(bytes: &'b [u8], path: &Path) -> Result<&'b str, FileError> {
    decode_utf8(bytes).map_err(|source| FileError::NotText {
        path: path.to_owned(),
        source,
    })
}

/// What a text says, with its places; errors name the path as that of the file.
///
/// # Errors
/// It is no YAML and no JSON.
pub fn as_document(text: &str, path: &Path) -> Result<Document, FileError> {
    Document::read(text).map_err(|source| FileError::Document {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("it.yaml");
        let shown = path.display().to_string();
        let told = |most| read_text(&path, most).map_err(|error| error.whole());

        let gone = read_text(&path, 9).unwrap_err();
        assert!(gone.is_not_found());
        assert_eq!(gone.to_string(), format!("cannot read {shown}"));
        assert!(gone.whole().starts_with(&format!("cannot read {shown}: ")));

        std::fs::write(&path, "a: 1\n").unwrap();
        assert_eq!(told(5), Ok("a: 1\n".to_owned()));
        assert_eq!(told(4), Err(format!("{shown} is larger than 0 MiB")));

        std::fs::write(&path, b"a: \xff\n").unwrap();
        let error = told(9).unwrap_err();
        assert!(error.starts_with(&format!("{shown}: ")), "{error}");

        let error = as_document("a: [", &path).unwrap_err();
        assert!(!error.is_not_found());
        let place = format!("{shown}:2:1: ");
        assert!(error.whole().starts_with(&place), "{}", error.whole());
    }
}
