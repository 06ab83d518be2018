use super::*;

/// Every tool of a text, with where it stands.
fn read(text: &str) -> Vec<(SourceLocation, CanonicalizedTool)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tools.json");
    std::fs::write(&file, text).unwrap();
    let args = InputArgs {
        files: vec![file],
        input: Vec::new(),
        source_format: FormatChoice::Detect,
        tools: Vec::new(),
    };
    let mut tools = Vec::new();
    each_tool(&args, |read| {
        tools.push((
            read.location.source_location(&read.canonicalized),
            read.canonicalized,
        ));
        Ok(())
    })
    .unwrap();
    tools
}

const TOOLS: &str = r#"[{"name":"a","inputSchema":{"type":"object"}},
    {"name":"b","inputSchema":{"type":"object"}}]"#;

#[test]
fn the_text_of_a_list_is_in_memory_once() {
    for (before, after) in [("", ""), ("{\"tools\":", "}"), ("\u{feff}", "")] {
        let tools = read(&format!("{before}{TOOLS}{after}"));
        let [(first, a), (second, b)] = tools.as_slice() else {
            panic!("two tools, not {}", tools.len());
        };
        let text = |tool: &CanonicalizedTool| tool.tool.definition.clone().unwrap();
        assert_eq!(text(a).text().as_ptr(), first.text().as_ptr());
        assert_eq!(text(b).text().as_ptr(), second.text().as_ptr());
        // The second definition stands where it stood in the file.
        let distance = TOOLS.rfind("{\"name").unwrap() - TOOLS.find("{\"name").unwrap();
        let addresses = [first, second].map(|place| place.text().as_ptr() as usize);
        assert_eq!(addresses[1] - addresses[0], distance);
        assert!(Arc::ptr_eq(&first.file, &second.file));
    }
}

#[test]
fn tools_of_one_document_share_its_text() {
    let response = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":{TOOLS}}}}}"#);
    let tools = read(&response);
    assert_eq!(tools.len(), 2);
    let addresses: Vec<_> = tools.iter().map(|(it, _)| it.text().as_ptr()).collect();
    assert_eq!(addresses.first(), addresses.last());
    assert!(tools.iter().all(|(place, _)| place.text() == response));
}
