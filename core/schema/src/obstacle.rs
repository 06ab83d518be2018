use serde_json::Value;
use toolwarden_model::json::Pointer;
use toolwarden_model::keywords::subschemas;

/// The most places of one keyword that are listed.
const MAX_PLACES: usize = 5;

/// Which of the two schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaSide {
    /// The old schema.
    Old,
    /// The new schema.
    New,
}

/// A keyword that prevented an answer to a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The schema that contains it.
    pub side: SchemaSide,
    /// Its place in the schema.
    pub pointer: Pointer,
    /// The keyword.
    pub keyword: String,
}

/// The places of keywords in a schema.
pub(crate) fn find_obstacles(schema: &Value, side: SchemaSide, keywords: &[&str]) -> Vec<Obstacle> {
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
