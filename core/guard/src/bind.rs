use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::Object;

/// Why positional arguments have no names.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unbindable {
    /// One parameter is given twice.
    #[error("argument '{name}' is given by position and by name")]
    Twice {
        /// The parameter.
        name: String,
    },
    /// There are more arguments than parameters.
    #[error("{given} arguments are given by position, and there are {known} parameters")]
    TooMany {
        /// How many are given.
        given: usize,
        /// How many there are.
        known: usize,
    },
}

/// The arguments of a call by name. Those given by position take the parameters' names where they
/// are known, and `arg_0`, `arg_1`, … where not.
///
/// # Errors
/// With known parameters: one is given twice, or there are more arguments than parameters.
pub fn bind(
    parameters: Option<&[String]>,
    positional: Vec<Value>,
    named: Object,
) -> Result<Object, Unbindable> {
    let mut bound = Object::new();
    let Some(parameters) = parameters else {
        for (at, value) in positional.into_iter().enumerate() {
            bound.insert(format!("arg_{at}"), value);
        }
        bound.extend(named);
        return Ok(bound);
    };
    if positional.len() > parameters.len() {
        return Err(Unbindable::TooMany {
            given: positional.len(),
            known: parameters.len(),
        });
    }
    for (name, value) in parameters.iter().zip(positional) {
        if named.contains_key(name) {
            return Err(Unbindable::Twice { name: name.clone() });
        }
        bound.insert(name.clone(), value);
    }
    bound.extend(named);
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolwarden_testkit::vectors;

    fn object(value: &Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn without_parameters_as_the_document_says() {
        let Some(vectors) = vectors("guard.json") else {
            return;
        };
        let cases = vectors["wrap_args_inputdata"].as_array().unwrap();
        assert_eq!(cases.len(), 4);
        for case in cases {
            let positional = case[0][0].as_array().unwrap().clone();
            let bound = bind(None, positional, object(&case[0][1])).unwrap();
            assert_eq!(Value::Object(bound), case[1], "{case}");
        }
    }

    #[test]
    fn with_parameters_by_name() {
        let names = ["prompt".to_owned(), "limit".to_owned()];
        let bind = |positional: Value, named: Value| {
            super::bind(
                Some(&names),
                positional.as_array().cloned().unwrap(),
                object(&named),
            )
        };
        assert_eq!(
            bind(json!(["hi"]), json!({"limit": 2})),
            Ok(object(&json!({"prompt": "hi", "limit": 2})))
        );
        assert_eq!(
            bind(json!(["hi"]), json!({"prompt": "x"})),
            Err(Unbindable::Twice {
                name: "prompt".to_owned()
            })
        );
        assert_eq!(
            bind(json!([1, 2, 3]), json!({})),
            Err(Unbindable::TooMany { given: 3, known: 2 })
        );
    }
}
