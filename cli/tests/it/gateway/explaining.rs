use serde_json::{Value, json};

use super::{ServedGateway, shop_settings};
use crate::sandbox::{CommandOutput, Sandbox, command_output};

const POLICY: &str = "\
policy:
  tools: {shop__refund_order: {groups: [money]}}
  principals:
    ada: {groups: [default]}
    eve: {groups: [default, money]}
";

fn explain(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    let mut command = sandbox.command();
    command_output(command.arg("explain").args(args).output().unwrap())
}

#[test]
fn a_gateway_says_why_and_so_does_its_store() {
    let sandbox = Sandbox::new();
    sandbox.write("toolwarden.yaml", &shop_settings(POLICY));
    let refund = ["--tool", "shop__refund_order"];
    let unknown = explain(&sandbox, &[&["--principal", "ada"], &refund[..]].concat());
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(
        unknown
            .err
            .contains("nothing is known of the tools of shop"),
        "{unknown:?}"
    );

    let served = ServedGateway::start(&sandbox, &[]);
    served.tools();
    let online = explain(&sandbox, &[&["--url", &served.url()], &refund[..]].concat());
    assert_eq!(online.code, 1, "{online:?}");
    assert!(
        online
            .out
            .starts_with("shop__refund_order: ada does not see it\n"),
        "{online:?}"
    );
    assert!(online.out.contains("deny  group "), "{online:?}");
    let echo = [
        "--tool",
        "shop__echo",
        "--url",
        &served.url(),
        "--format",
        "json",
    ];
    let echo = explain(&sandbox, &echo);
    let document: Value = serde_json::from_str(&echo.out).unwrap();
    assert_eq!(echo.code, 0, "{echo:?}");
    assert_eq!(
        (&document["visible"], &document["callable"]),
        (&json!(true), &json!(true))
    );
    drop(served);

    let offline = explain(&sandbox, &[&["--principal", "ada"], &refund[..]].concat());
    assert_eq!((offline.code, offline.err.as_str()), (1, ""), "{offline:?}");
    assert!(
        offline
            .out
            .starts_with("shop__refund_order: ada does not see it\n"),
        "{offline:?}"
    );
    assert!(offline.out.contains("deny  group "), "{offline:?}");
    let eve = ["--principal", "eve", "--group", "money"];
    let eve = explain(&sandbox, &[&eve[..], &refund[..]].concat());
    assert_eq!(eve.code, 0, "{eve:?}");
    assert!(
        eve.out
            .starts_with("shop__refund_order: eve sees it and may call it\n"),
        "{eve:?}"
    );
}

#[test]
fn a_gateway_that_is_not_there_is_no_answer() {
    let sandbox = Sandbox::new();
    let told = explain(&sandbox, &["--url", "http://127.0.0.1:1", "--tool", "x"]);
    assert_eq!(told.code, 3, "{told:?}");
    let begin = "error: the gateway at http://127.0.0.1:1/api/v1/explain could not be reached: ";
    assert!(told.err.starts_with(begin), "{told:?}");
}
