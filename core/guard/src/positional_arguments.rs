use serde_json::Value;
use thiserror::Error;
use toolwarden_model::json::Object;

/// Why positional arguments cannot be bound to parameter names.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BindError {
    /// One parameter is given twice.
    #[error("argument '{name}' is given by position and by name")]
    DuplicateArgument {
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

/// The arguments of a call by name. Positional arguments get the parameters' names if these are known, and
/// otherwise `arg_0`, `arg_1`, …
///
/// # Errors
/// Only with known parameters: one is given twice, or there are more arguments than parameters.
pub fn bind_arguments(
    parameters: Option<&[String]>,
    positional: Vec<Value>,
    named: Object,
) -> Result<Object, BindError> {
    let mut bound = Object::new();
    let Some(parameters) = parameters else {
        for (at, value) in positional.into_iter().enumerate() {
            bound.insert(format!("arg_{at}"), value);
        }
        bound.extend(named);
        return Ok(bound);
    };
    if positional.len() > parameters.len() {
        return Err(BindError::TooMany {
            given: positional.len(),
            known: parameters.len(),
        });
    }
    for (name, value) in parameters.iter().zip(positional) {
        if named.contains_key(name) {
            return Err(BindError::DuplicateArgument { name: name.clone() });
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
    use toolwarden_testkit::read_vectors;

    fn object(value: &Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn without_parameters_as_the_document_says() {
        let Some(vectors) = read_vectors("guard.json") else {
            return;
        };
        let cases = vectors["wrap_args_inputdata"].as_array().unwrap();
        assert_eq!(cases.len(), 4);
        for case in cases {
            let positional = case[0][0].as_array().unwrap().clone();
            let bound = bind_arguments(None, positional, object(&case[0][1])).unwrap();
            assert_eq!(Value::Object(bound), case[1], "{case}");
        }
    }

    #[test]
    fn with_parameters_by_name() {
        let names = ["prompt".to_owned(), "limit".to_owned()];
        let bind = |positional: Value, named: Value| {
            super::bind_arguments(
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
            Err(BindError::DuplicateArgument {
                name: "prompt".to_owned()
            })
        );
        assert_eq!(
            bind(json!([1, 2, 3]), json!({})),
            Err(BindError::TooMany { given: 3, known: 2 })
        );
    }
}
