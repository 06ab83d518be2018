//! What observing a result costs beside parsing it, and what a shape takes after many results.
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints it"
)]

use std::hint::black_box;
use std::time::Instant;

use serde_json::{Value, json};
use toolwarden_drift::shape::{Shape, Significance, ValueKey, compare};

const ROUNDS: usize = 9;

fn main() {
    cost("nested result", |number| nested(number).to_string());
    cost("array of 20", |number| {
        (0..20)
            .map(|at| item(number * 20 + at))
            .collect::<Value>()
            .to_string()
    });
    size();
}

/// The fastest of several rounds over different results of one kind.
fn cost(what: &str, make: impl Fn(u64) -> String) {
    let key = ValueKey::new([7; 16]);
    let texts: Vec<String> = (0..2000).map(make).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let values: Vec<Value> = texts
        .iter()
        .map(|text| serde_json::from_str(text).expect("JSON"))
        .collect();
    let mut shape = Shape::new(key.id());
    for value in &values {
        shape.observe(value, &key);
    }
    let (mut parsing, mut observing) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for text in &texts {
            black_box(serde_json::from_str::<Value>(text).expect("JSON"));
        }
        parsing = parsing.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for value in &values {
            shape.observe(black_box(value), &key);
        }
        observing = observing.min(start.elapsed().as_secs_f64());
    }
    let each = |seconds: f64| seconds * 1e6 / texts.len() as f64;
    println!(
        "{what}: {} bytes, parse {:.2} µs, observe {:.2} µs, ratio {:.2}, shape {} bytes",
        bytes / texts.len(),
        each(parsing),
        each(observing),
        observing / parsing,
        shape.to_json().to_string().len()
    );
    let start = Instant::now();
    let drift = compare(&shape, &shape, &Significance::default());
    println!(
        "{what}: compare {:.2} ms, {} changes",
        start.elapsed().as_secs_f64() * 1e3,
        drift.changes.len()
    );
}

fn size() {
    let key = ValueKey::new([7; 16]);
    let mut shape = Shape::new(key.id());
    for number in 1..=1_000_000 {
        shape.observe(&nested(number), &key);
        if number == 1000 || number == 1_000_000 {
            println!(
                "after {number} results: {} bytes",
                shape.to_json().to_string().len()
            );
        }
    }
}

fn nested(number: u64) -> Value {
    json!({
        "id": number, "node_id": format!("{:032x}", number * 7919), "url": format!("https://example.org/repos/{number}"),
        "state": if number.is_multiple_of(3) { "closed" } else { "open" }, "locked": number.is_multiple_of(5), "title": format!("Fix number {number} of the things"),
        "user": {"login": format!("user{}", number % 50), "id": number % 1000, "type": "User", "site_admin": false, "avatar_url": "https://example.org/a.png"},
        "labels": [{"name": "bug", "color": "d73a4a", "default": true}, {"name": "help", "color": "008672", "default": false}],
        "milestone": null, "comments": number % 17, "score": number as f64 / 7.0,
        "created_at": "2026-11-16T05:01:35Z", "updated_at": "2026-11-16T06:01:35Z", "closed_at": if number.is_multiple_of(3) { json!("2026-11-16T06:01:35Z") } else { Value::Null },
        "reactions": {"total_count": number % 9, "plus": number % 4, "minus": 0, "laugh": 0, "hooray": 0, "confused": 0, "heart": 1},
        "head": {"ref": "main", "sha": format!("{:040x}", number * 104_729), "repo": {"id": 7, "name": "things", "private": false, "description": "A repository of things that are fixed", "stars": 1200, "language": "Rust"}},
        "body": "It does not work as it should, and that is a pity. Steps to see it: open it, look at it.",
    })
}

fn item(number: u64) -> Value {
    json!({"id": number, "sku": format!("SKU-{number}"), "name": format!("Thing {}", number % 300), "price": number as f64 / 3.0, "stock": number % 40, "category": if number.is_multiple_of(2) { "tools" } else { "parts" }, "active": !number.is_multiple_of(7)})
}
