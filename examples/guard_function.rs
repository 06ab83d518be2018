//! Puts a function behind a policy:
//! `cargo run --package toolwarden-examples --no-default-features --bin guard_function`
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::error::Error;
use std::path::Path;

use toolwarden::guard::{AuditLog, Clock, InterceptError, Interceptor, LiveGuard, LoadedPolicy};

const POLICY: &str = "\
tools:
  refund:
    groups: [support]
    rate_limit: 3
    input_schema:
      required: [order, cents]
      properties: {cents: {type: integer, minimum: 1, maximum: 5000}}
principals:
  ada: {groups: [support]}
  bob: {groups: [default]}
";

fn main() -> Result<(), Box<dyn Error>> {
    let policy = LoadedPolicy::of_text(POLICY.as_bytes(), Path::new("policy"), Path::new(""))?;
    let guard = LiveGuard::open(policy, AuditLog::recent(), Clock::default())?;
    let interceptor = Interceptor::new(guard);

    for (principal, order, cents) in [
        ("ada", "A-1", 1_200),
        ("ada", "A-2", 9_900),
        ("bob", "A-3", 100),
        ("ada", "A-4", 300),
        ("ada", "A-5", 400),
    ] {
        let refund = interceptor
            .wrap("refund", principal, refund)
            .parameters(["order", "cents"]);
        match refund.call((order.to_owned(), cents)) {
            Ok((order, cents)) => println!("{principal}: refunded {cents} cents of {order}"),
            Err(InterceptError::Denied { denial, .. }) => {
                println!(
                    "{principal}: denied, {}: {}",
                    denial.code.as_str(),
                    denial.reason
                );
            }
            Err(other) => return Err(other.into()),
        }
    }
    if let AuditLog::Recent(log) = interceptor.audit_log() {
        println!(
            "{} entries in the log, {} of denials",
            log.len(),
            log.denied().len()
        );
    }
    Ok(())
}

/// The function behind the policy. Its result is the receipt.
fn refund(order: String, cents: i64) -> Result<(String, i64), std::io::Error> {
    Ok((order, cents))
}
