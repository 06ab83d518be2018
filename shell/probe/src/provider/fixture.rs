/// The providers with a recorded response, and the response: a body of `/chat/completions` for the
/// bundled suite. All of them are synthetic.
pub const FIXTURES: [(&str, &[u8]); 5] = [
    (
        "deepseek",
        include_bytes!("../../data/fixtures/deepseek.json"),
    ),
    ("qwen", include_bytes!("../../data/fixtures/qwen.json")),
    ("kimi", include_bytes!("../../data/fixtures/kimi.json")),
    ("glm", include_bytes!("../../data/fixtures/glm.json")),
    (
        "minimax",
        include_bytes!("../../data/fixtures/minimax.json"),
    ),
];

/// The recorded response of a provider.
#[must_use]
pub fn fixture(provider: &str) -> Option<&'static [u8]> {
    let found = FIXTURES.iter().find(|(name, _)| *name == provider);
    found.map(|(_, body)| *body)
}
