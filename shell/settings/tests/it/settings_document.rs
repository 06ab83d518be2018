//! The document of the settings is generated from the table that the reader uses.

use std::path::Path;

use toolwarden_settings::markdown_reference;

const HEAD: &str = "# toolwarden.yaml, every key\n\n\
Every key of the settings of the [gateway](gateway.md). `toolwarden config schema` prints the same as a JSON Schema\n\
for editors.\n\n";

#[test]
fn the_document_has_every_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let expected = format!("{HEAD}{}\n", markdown_reference().trim_end());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, expected, "run with UPDATE_GOLDEN=1");
}
