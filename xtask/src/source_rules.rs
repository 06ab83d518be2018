//! Rules for source files: their size, names and forbidden text.

use crate::workspace::{SourceFile, Workspace};

/// The maximum number of lines of a file. Listed tables may have more.
const MAX_LINES: usize = 800;
const LONG_TABLES: &[&str] = &[];

/// The maximum number of lines of a `lib.rs`: it is a table of contents.
const MAX_LIB_LINES: usize = 100;

/// Forbidden text, and why. Each is split in two so that this file does not contain it.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("#[ig", "nore", "a test that does not run proves nothing"),
    ("#[should", "_panic]", "say what is expected instead"),
    ("todo", "!(", "finish it or leave it out"),
    ("unimplemented", "!(", "finish it or leave it out"),
    ("/wo", "rk/", "a path of one machine"),
    ("/ro", "ot/", "a path of one machine"),
];

pub(crate) fn check(workspace: &Workspace) -> Vec<String> {
    workspace.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<String> {
    let path = &file.path;
    let lines = file.text.lines().count();
    let mut violations = Vec::new();
    if lines > MAX_LINES && !LONG_TABLES.contains(&path.as_str()) {
        violations.push(format!("{path}: {lines} lines, at most {MAX_LINES}"));
    }
    if path.ends_with("/src/lib.rs") && lines > MAX_LIB_LINES {
        violations.push(format!(
            "{path}: {lines} lines, at most {MAX_LIB_LINES} in a table of contents"
        ));
    }
    let stem = path.rsplit('/').next().unwrap_or_default();
    if ["utils.rs", "util.rs", "common.rs", "helpers.rs", "misc.rs"].contains(&stem) {
        violations.push(format!("{path}: the name says nothing"));
    }
    for (start, end, why) in FORBIDDEN {
        let text = format!("{start}{end}");
        for (index, _) in file
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains(&text))
        {
            violations.push(format!("{path}:{}: `{text}`: {why}", index + 1));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_text_is_found_with_its_line() {
        let file = |path: &str, text: String| SourceFile {
            path: path.to_owned(),
            text,
        };
        let ignored = format!("fn a() {{}}\n{}{}]\n", "#[ig", "nore");
        assert_eq!(
            check_file(&file("cli/src/a.rs", ignored)),
            [format!(
                "cli/src/a.rs:2: `{}{}`: a test that does not run proves nothing",
                "#[ig", "nore"
            )]
        );
        assert_eq!(
            check_file(&file("cli/src/b.rs", "\n".repeat(801))),
            ["cli/src/b.rs: 801 lines, at most 800"]
        );
        assert_eq!(
            check_file(&file("core/x/src/lib.rs", "\n".repeat(101))).len(),
            1
        );
        assert_eq!(
            check_file(&file("core/x/src/utils.rs", String::new())),
            ["core/x/src/utils.rs: the name says nothing"]
        );
    }
}
