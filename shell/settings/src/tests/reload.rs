use super::super::SettingsChanges;
use super::read;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn what_differs_is_named() {
    let old = "{servers: {a: x, b: x, c: {command: x, env: {A: '${GITHUB_TOKEN}'}}}}";
    let cases = [
        (old, SettingsChanges::default()),
        (
            "{servers: {d: y, b: x, c: {command: x, env: {A: '${DOCS_TOKEN}'}}}}",
            SettingsChanges {
                added: names(&["d"]),
                removed: names(&["a"]),
                changed: names(&["c"]),
                ..SettingsChanges::default()
            },
        ),
        (
            "{servers: {a: x, b: x, c: {command: x, env: {A: '${GITHUB_TOKEN}'}}}, listen: 127.0.0.1:1, store: s, \
             traces: http://h, drain: 1s, identity: {anonymous: a}}",
            SettingsChanges {
                applied: vec!["identity", "drain"],
                need_restart: vec!["listen.address", "store", "traces"],
                ..SettingsChanges::default()
            },
        ),
        (
            "{servers: {a: x, b: x, c: {command: x, env: {A: '${GITHUB_TOKEN}'}}}, \
             listen: {hosts: h, tls: {certificate: c, key: k}}, watch: {every: 1m}}",
            SettingsChanges {
                // Servers without their own settings use the common ones.
                changed: names(&["a", "b", "c"]),
                applied: vec!["listen", "watch"],
                need_restart: vec!["listen.tls"],
                ..SettingsChanges::default()
            },
        ),
    ];
    for (new, expected) in cases {
        let changes = read(old).changes(&read(new));
        assert_eq!(changes.is_empty(), expected == SettingsChanges::default());
        assert_eq!(changes, expected, "{new}");
    }
}
