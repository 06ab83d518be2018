//! The data and the actions of the shop.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::messages::DemoError;

/// The members of the list of resources.
pub(super) const RESOURCES: &str = r#""resources":[{"uri":"orders://today","name":"today","title":"Orders of today","mimeType":"application/json","size":312,"annotations":{"audience":["assistant"],"priority":0.50},"x-shop-index":"orders_v3"}]"#;
/// The members of the list of templates.
pub(super) const TEMPLATES: &str = r#""resourceTemplates":[{"uriTemplate":"orders://{order_id}","name":"order","mimeType":"application/json","_meta":{"shop.example/cost":0.10}}]"#;
/// The members of the list of prompts.
pub(super) const PROMPTS: &str = r#""prompts":[{"name":"refund_letter","title":"A letter on a refund","description":"A letter that tells a customer of a refund.","arguments":[{"name":"order_id","required":true},{"name":"tone","description":"friendly or formal"}],"x-shop-desk":"letters"}]"#;

struct Order {
    id: &'static str,
    customer: &'static str,
    status: &'static str,
    region: &'static str,
    cents: u32,
}

const ORDERS: [Order; 4] = [
    order("A-1001", "Ada Lindqvist", "paid", "eu", 12_990),
    order("A-1002", "Bayard Okafor", "shipped", "us", 4_500),
    order("A-1003", "Chiyo Tanaka", "open", "apac", 23_900),
    order("A-1004", "Ada Lindqvist", "refunded", "eu", 1_999),
];

const fn order(
    id: &'static str,
    customer: &'static str,
    status: &'static str,
    region: &'static str,
    cents: u32,
) -> Order {
    Order {
        id,
        customer,
        status,
        region,
        cents,
    }
}

/// Finds orders.
pub(super) fn search(arguments: &Value) -> String {
    let wanted = |key: &str, has: &str| {
        let said = arguments.get(key).and_then(Value::as_str);
        said.is_none_or(|said| has.contains(said))
    };
    let found: Vec<Value> = ORDERS
        .iter()
        .filter(|order| {
            wanted("customer", order.customer)
                && wanted("status", order.status)
                && wanted("region", order.region)
        })
        .map(order_json)
        .collect();
    let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(20);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let matches = found.len();
    let shown: Vec<Value> = found.into_iter().take(limit).collect();
    structured(&json!({"orders": shown, "matches": matches}))
}

/// Refunds an order.
pub(super) fn refund(arguments: &Value) -> String {
    let id = arguments.get("order_id").and_then(Value::as_str);
    let Some(order) = ORDERS.iter().find(|order| Some(order.id) == id) else {
        return error_result("there is no such order");
    };
    // The number is repeated exactly as it was written.
    let amount = arguments.get("amount").cloned().unwrap_or_default();
    structured(&json!({"order_id": order.id, "refunded": amount, "status": "refunded"}))
}

/// Returns the arguments, byte for byte.
pub(super) fn echo(params: Option<&RawValue>) -> String {
    let params = params.map_or("{}", RawValue::get);
    format!(
        r#""content":[{{"type":"text","text":"echo"}}],"structuredContent":{{"params":{params}}}"#
    )
}

/// Reads a resource.
pub(super) fn read(uri: &str) -> Result<String, DemoError> {
    let id = uri.strip_prefix("orders://").unwrap_or_default();
    let text = if id == "today" {
        Value::from(ORDERS.iter().map(order_json).collect::<Vec<_>>()).to_string()
    } else {
        let order = ORDERS.iter().find(|order| order.id == id);
        let order = order.ok_or_else(|| DemoError {
            data: Some(json!({"uri": uri})),
            ..DemoError::invalid("there is no such resource")
        })?;
        order_json(order).to_string()
    };
    let contents = json!([{"uri": uri, "mimeType": "application/json", "text": text}]);
    Ok(format!(r#""contents":{contents}"#))
}

/// Returns a prompt.
pub(super) fn prompt(name: &str, arguments: &Value) -> Result<String, DemoError> {
    if name != "refund_letter" {
        return Err(DemoError::invalid(format!("there is no prompt `{name}`")));
    }
    let said = |key: &str, otherwise: &'static str| {
        let text = arguments.get(key).and_then(Value::as_str);
        text.unwrap_or(otherwise).to_owned()
    };
    let text = format!(
        "Write a {} letter that tells the customer of order {} of the refund.",
        said("tone", "friendly"),
        said("order_id", "A-1001"),
    );
    let messages = json!([{"role": "user", "content": {"type": "text", "text": text}}]);
    Ok(format!(
        r#""description":"A letter on a refund","messages":{messages}"#
    ))
}

/// Completes an argument of the prompt or of the template.
pub(super) fn completion(argument: &Value) -> String {
    let begun = argument.get("value").and_then(Value::as_str);
    let begun = begun.unwrap_or_default();
    let all: Vec<&str> = match argument.get("name").and_then(Value::as_str) {
        Some("order_id") => ORDERS.iter().map(|order| order.id).collect(),
        Some("tone") => vec!["formal", "friendly"],
        _ => Vec::new(),
    };
    let values: Vec<&str> = all.into_iter().filter(|it| it.starts_with(begun)).collect();
    let completion = json!({"total": values.len(), "values": values, "hasMore": false});
    format!(r#""completion":{completion}"#)
}

/// The members of a text result.
pub(super) fn text_result(text: &str) -> String {
    let text = Value::from(text);
    format!(r#""content":[{{"type":"text","text":{text}}}]"#)
}

/// The members of a result that reports a failure of a tool.
pub(super) fn error_result(text: &str) -> String {
    format!(r#"{},"isError":true"#, text_result(text))
}

fn structured(value: &Value) -> String {
    let text = Value::from(value.to_string());
    format!(r#""content":[{{"type":"text","text":{text}}}],"structuredContent":{value}"#)
}

fn order_json(order: &Order) -> Value {
    json!({
        "id": order.id,
        "customer": order.customer,
        "status": order.status,
        "region": order.region,
        "total": f64::from(order.cents) / 100.0,
    })
}
