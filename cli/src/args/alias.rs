use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Puts the word in that is missing when the binary is called by the name of a program it replaces.
pub(crate) fn with_alias(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    let called = args
        .first()
        .map(PathBuf::from)
        .and_then(|path| path.file_stem().map(OsString::from));
    let word = match called.as_deref().and_then(OsStr::to_str) {
        Some("toolcanon" | "aumai-toolcanon") => "canon",
        Some("toolwatch" | "aumai-toolwatch") => "watch",
        Some("tooldrift") => "probe",
        _ => return args,
    };
    let asked = args.get(1).map(OsString::as_os_str).and_then(OsStr::to_str);
    if matches!(asked, Some("--version" | "-V")) || asked == Some(word) {
        return args;
    }
    let asks = |option: &str| {
        args.iter()
            .any(|it| it.to_string_lossy().starts_with(option))
    };
    let as_before = !asks("--compat") && !asks("--help") && !asks("-h");
    // Scripts written for these programs read what they write, unless they ask for our formats.
    let compat: &[&str] = match (word, asked) {
        ("watch", Some("baseline" | "check" | "alerts")) if as_before && !asks("--format") => {
            &["--compat"]
        }
        ("probe", Some("snapshot" | "diff" | "run")) if as_before => &["--compat", "tooldrift"],
        _ => &[],
    };
    args.extend(compat.iter().map(OsString::from));
    args.insert(1, word.into());
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_program_names_stand_for_a_word() {
        let words = |args: &[&str]| with_alias(args.iter().map(OsString::from));
        assert_eq!(
            words(&["/usr/bin/toolcanon", "detect"]),
            ["/usr/bin/toolcanon", "canon", "detect"]
        );
        assert_eq!(
            words(&["toolcanon", "--version"]),
            ["toolcanon", "--version"]
        );
        assert_eq!(words(&["toolwarden", "canon"]), ["toolwarden", "canon"]);
        assert_eq!(
            words(&["toolwatch", "check", "--tool", "a"]),
            ["toolwatch", "watch", "check", "--tool", "a", "--compat"]
        );
        assert_eq!(
            words(&["toolwatch", "check", "--format=sarif"]),
            ["toolwatch", "watch", "check", "--format=sarif"]
        );
        assert_eq!(
            words(&["toolwatch", "list"]),
            ["toolwatch", "watch", "list"]
        );
    }
}
