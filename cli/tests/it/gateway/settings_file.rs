//! How commands take their settings.

use crate::sandbox::{CommandOutput, Sandbox, command_output};

const EXPLAIN: &[&str] = &["explain", "--principal", "ada", "--tool", "shop__pay"];
const COMMANDS: &[&[&str]] = &[
    &["serve"],
    &["config", "check"],
    &["config", "show"],
    EXPLAIN,
    &["alerts", "test"],
    &["alerts", "deliveries"],
];

fn run(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    command_output(sandbox.command().args(args).output().unwrap())
}

#[test]
fn every_command_takes_its_settings_in_both_ways() {
    let sandbox = Sandbox::new();
    // A mistake that every command reports with the name of the file it read.
    sandbox.write("prod.yaml", "servers: {}\nstroe: x.db\n");
    sandbox.write("toolwarden.yaml", "servers: {}\nlistn: x\n");
    for command in COMMANDS {
        let ways: [&[&str]; 4] = [
            &["prod.yaml"],
            &["--config", "prod.yaml"],
            &["-c", "prod.yaml"],
            &[],
        ];
        for way in ways {
            let said = run(&sandbox, &[command, way].concat());
            let place = match way {
                [] => "toolwarden.yaml:2:1: ",
                _ => "prod.yaml:2:1: ",
            };
            assert_eq!(said.code, 2, "{command:?} {way:?}: {said:?}");
            let text = format!("{}{}", said.out, said.err);
            assert!(text.contains(place), "{command:?} {way:?}: {said:?}");
        }
    }
}

#[test]
fn settings_given_twice_are_an_error() {
    let sandbox = Sandbox::new();
    sandbox.write("prod.yaml", "servers: {}\n");
    for command in COMMANDS {
        let said = run(
            &sandbox,
            &[command, &["prod.yaml", "-c", "prod.yaml"][..]].concat(),
        );
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{command:?}");
        let conflict = "cannot be used with";
        assert!(said.err.contains(conflict), "{command:?}: {said:?}");
    }
}

#[test]
fn a_running_gateway_is_not_asked_about_other_settings() {
    let sandbox = Sandbox::new();
    for way in [&["prod.yaml"][..], &["-c", "prod.yaml"]] {
        let said = run(
            &sandbox,
            &[EXPLAIN, &["--url", "http://127.0.0.1:1"], way].concat(),
        );
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{way:?}");
        assert!(said.err.contains("cannot be used with"), "{said:?}");
    }
}
