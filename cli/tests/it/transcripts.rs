//! Console blocks that leave nothing behind, run. `TRYCMD=overwrite` writes what came out.

#[test]
fn the_documents_tell_the_truth() {
    // Examples name files as seen from the root of the repository.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
    let cases = trycmd::TestCases::new();
    cases
        .case("docs/benchmarks.md")
        .case("docs/canon.md")
        .case("cli/tests/cmd/*.md");
    cases.run();
}
