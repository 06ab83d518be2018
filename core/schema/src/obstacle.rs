use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::keywords::subschemas;

/// The most places of one keyword that are listed.
const MAX_PLACES: usize = 5;

/// Which of the two schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one before.
    Old,
    /// The one after.
    New,
}

/// A keyword that kept a comparison from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The schema it stands in.
    pub side: Side,
    /// Where it stands.
    pub pointer: Pointer,
    /// The keyword.
    pub keyword: String,
}

/// Where keywords stand in a schema.
pub(crate) fn places(schema: &Value, side: Side, keywords: &[&str]) -> Vec<Obstacle> {
    let mut found: Vec<Obstacle> = Vec::new();
    let mut open = vec![(Pointer::root(), schema)];
    while let Some((at, schema)) = open.pop() {
        let Value::Object(members) = schema else {
            continue;
        };
        for keyword in keywords {
            let listed = found.iter().filter(|place| place.keyword == **keyword);
            if members.contains_key(*keyword) && listed.count() < MAX_PLACES {
                found.push(Obstacle {
                    side,
                    pointer: at.child(keyword),
                    keyword: (*keyword).to_owned(),
                });
            }
        }
        open.extend(subschemas(members, &at));
    }
    found
}
