//! Counts and prints the results of the cases.

use std::collections::BTreeMap;

use super::skip::Reason;

/// The result of a case.
pub enum Verdict {
    Passed,
    Failed(String),
    /// The design excludes the case.
    RuledOut(Reason),
    /// The operation, or this form of it, does not exist.
    NotBuilt(String),
}

/// The results so far.
#[derive(Default)]
pub struct Report {
    passed: usize,
    failed: usize,
    ruled_out: BTreeMap<Reason, usize>,
    not_built: BTreeMap<String, usize>,
    /// True if every case is printed.
    pub verbose: bool,
}

impl Report {
    /// Counts a case. Prints it if it failed, or if `verbose` is true.
    pub fn add(&mut self, id: &str, verdict: Verdict) {
        match verdict {
            Verdict::Passed => {
                self.passed += 1;
                if self.verbose {
                    println!("pass {id}");
                }
            }
            Verdict::Failed(message) => {
                self.failed += 1;
                println!("FAIL {id}: {message}");
            }
            Verdict::RuledOut(reason) => {
                *self.ruled_out.entry(reason).or_default() += 1;
                if self.verbose {
                    println!("skip {id}: ruled out ({reason})");
                }
            }
            Verdict::NotBuilt(operation) => {
                if self.verbose {
                    println!("skip {id}: {operation} is not built");
                }
                *self.not_built.entry(operation).or_default() += 1;
            }
        }
    }

    /// Returns the number of cases.
    pub fn total(&self) -> usize {
        self.passed + self.failed + self.skipped()
    }

    fn skipped(&self) -> usize {
        self.ruled_out.values().sum::<usize>() + self.not_built.values().sum::<usize>()
    }

    /// Returns the sentence about the counts that README.md must contain.
    pub fn sentence(&self) -> String {
        let share = 100.0 * self.skipped() as f64 / self.total().max(1) as f64;
        let [passed, skipped] = [self.passed, self.skipped()].map(thousands);
        format!("{passed} cases pass, {} fail, and {skipped} ({share:.1}%) are skipped.", self.failed)
    }

    /// Prints the counts. Returns true if no case failed.
    pub fn finish(self) -> bool {
        let share = |count: usize| 100.0 * count as f64 / self.total().max(1) as f64;
        if !self.not_built.is_empty() {
            let count = self.not_built.values().sum();
            println!("not built: {count} cases ({:.1}%)", share(count));
            for (operation, count) in &self.not_built {
                println!("  {count:5}  {operation}: not built");
            }
        }
        if !self.ruled_out.is_empty() {
            let count = self.ruled_out.values().sum();
            println!("ruled out by the design: {count} cases ({:.1}%)", share(count));
            for (reason, count) in &self.ruled_out {
                println!("  {count:5}  {reason}");
            }
        }
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped());
        self.failed == 0
    }
}

/// Returns a number below a million as text, with a comma after the thousands.
fn thousands(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}
