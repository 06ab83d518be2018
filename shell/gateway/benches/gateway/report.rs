//! The tables that are printed.

use super::measure::Measurements;

/// What a figure is to be.
pub(crate) struct Target {
    what: String,
    is: f64,
    limit: f64,
    is_least: bool,
}

/// All figures that have a target.
#[derive(Default)]
pub(crate) struct Targets(Vec<Target>);

impl Targets {
    pub(crate) fn at_most(&mut self, what: impl Into<String>, is: f64, limit: f64) {
        self.add(what.into(), is, limit, false);
    }

    pub(crate) fn at_least(&mut self, what: impl Into<String>, is: f64, limit: f64) {
        self.add(what.into(), is, limit, true);
    }

    fn add(&mut self, what: String, is: f64, limit: f64, is_least: bool) {
        self.0.push(Target {
            what,
            is,
            limit,
            is_least,
        });
    }

    pub(crate) fn print(&self) {
        println!("| figure | is | target | |\n|---|---:|---:|---|");
        for target in &self.0 {
            let Target {
                what,
                is,
                limit,
                is_least,
            } = target;
            let (sign, holds) = if *is_least {
                ("≥", is >= limit)
            } else {
                ("≤", is <= limit)
            };
            let word = if holds { "PASS" } else { "FAIL" };
            println!("| {what} | {is:.3} | {sign} {limit} | {word} |");
        }
    }
}

/// Prints programs compared with the first, which is the server itself, and the second, which is the limit.
pub(crate) fn beside(title: &str, named: &[(&str, Measurements)]) {
    let (direct, hop) = (named[0].1, named[1].1);
    println!("\n{title}\n");
    println!(
        "| by way of | calls/s | p50, ms | p99, ms | added p50 | added p99 | CPU, µs | of the hop |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for (at, (name, it)) in named.iter().enumerate() {
        let Measurements {
            rate,
            p50,
            p99,
            cpu,
        } = it;
        print!("| {name} | {rate:.0} | {p50:.3} | {p99:.3} |");
        if at == 0 {
            println!(" | | {cpu:.1} | |");
        } else {
            let (more50, more99) = (p50 - direct.p50, p99 - direct.p99);
            let ratio = cpu / hop.cpu;
            println!(" {more50:.3} | {more99:.3} | {cpu:.1} | {ratio:.2} |");
        }
    }
}

/// Prints how figures grow with a number.
pub(crate) fn growth(title: &str, rows: &[(usize, f64, Measurements)]) {
    println!("\n{title}\n");
    println!("| number | calls/s | p50, ms | p99, ms | CPU, µs | of the first | memory, MB |");
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    let first = rows[0].2.cpu;
    for (number, memory, it) in rows {
        let Measurements {
            rate,
            p50,
            p99,
            cpu,
        } = it;
        let ratio = cpu / first;
        println!(
            "| {number} | {rate:.0} | {p50:.3} | {p99:.3} | {cpu:.1} | {ratio:.2} | {memory:.0} |"
        );
    }
}
