//! The parser of `einsum` equations such as `ij,jk->ik`. The parser needs the ranks of the operands, but not their sizes and elements.
//!
//! The grammar is PyTorch's: letters `a-zA-Z`; `...` for dimensions without a name; spaces are ignored. Without `->` the result
//! has the dimensions of `...`, then the letters that occur once, in alphabetical order with capitals first.

/// The name of a dimension. Labels compare (`Ord`) in the order that they have in the result of an equation without `->`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Label {
    /// A dimension of `...`, counted from the end: the last one is -1. `tensordot` gives all dimensions labels of this kind, from 0 on.
    Ellipsis(isize),
    /// A letter.
    Letter(char),
}

/// The labels of the dimensions of each operand and of the result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Equation {
    pub(crate) inputs: Vec<Vec<Label>>,
    pub(crate) output: Vec<Label>,
}

impl Equation {
    /// Parses `text` for operands of the given ranks. The error is PyTorch's error message.
    pub(crate) fn parse(text: &str, ranks: &[usize]) -> Result<Self, String> {
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (text, None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != ranks.len() {
            let how = if terms.len() > ranks.len() { "fewer" } else { "more" };
            return Err(format!("einsum(): {how} operands were provided than specified in the equation"));
        }
        let mut inputs = Vec::with_capacity(terms.len());
        for (operand, (&term, &rank)) in terms.iter().zip(ranks).enumerate() {
            let symbols = symbols(term, &format!("operand {operand}"))?;
            let letters = symbols.iter().flatten().count();
            let has_ellipsis = letters < symbols.len();
            if letters > rank || letters < rank && !has_ellipsis {
                let how = if has_ellipsis {
                    format!("is more than the number of dimensions ({rank}) for operand {operand}")
                } else {
                    format!(
                        "does not match the number of dimensions ({rank}) for operand {operand} and no ellipsis was given"
                    )
                };
                return Err(format!("einsum(): the number of subscripts in the equation ({letters}) {how}"));
            }
            inputs.push(labels(&symbols, rank - letters));
        }
        let ellipsis_rank = inputs.iter().flatten().filter_map(|label| match label {
            Label::Ellipsis(position) => Some(position.unsigned_abs()),
            Label::Letter(_) => None,
        });
        let ellipsis_rank = ellipsis_rank.max().unwrap_or(0);
        let output = match right {
            Some(right) => labels(&symbols(right, "the output")?, ellipsis_rank),
            None => implicit_output(&inputs, ellipsis_rank),
        };
        for (position, label) in output.iter().enumerate() {
            let Label::Letter(letter) = label else { continue };
            if output[..position].contains(label) {
                return Err(format!("einsum(): output subscript {letter} appears more than once in the output"));
            }
            if !inputs.iter().any(|input| input.contains(label)) {
                return Err(format!(
                    "einsum(): output subscript {letter} does not appear in the equation for any input operand"
                ));
            }
        }
        Ok(Equation { inputs, output })
    }
}

/// Returns the letters of one term, which names the dimensions of one operand or of the result. `...` becomes `None`.
fn symbols(term: &str, what: &str) -> Result<Vec<Option<char>>, String> {
    let mut symbols = Vec::new();
    let mut rest = term;
    while let Some(first) = rest.chars().next() {
        if let Some(later) = rest.strip_prefix("...") {
            if symbols.contains(&None) {
                return Err(format!("einsum(): found '.' for {what} for which an ellipsis was already found"));
            }
            symbols.push(None);
            rest = later;
            continue;
        }
        match first {
            ' ' => {}
            'a'..='z' | 'A'..='Z' => symbols.push(Some(first)),
            '.' => return Err(format!("einsum(): found '.' for {what} that is not part of any ellipsis")),
            other => {
                return Err(format!(
                    "einsum(): invalid subscript given for {what}: '{other}', subscripts must be in [a-zA-Z]"
                ));
            }
        }
        rest = &rest[first.len_utf8()..];
    }
    Ok(symbols)
}

/// Returns the labels of the dimensions that one term names. In the term, `...` stands for `ellipsis_rank` dimensions.
fn labels(symbols: &[Option<char>], ellipsis_rank: usize) -> Vec<Label> {
    let mut labels = Vec::new();
    for symbol in symbols {
        match symbol {
            Some(letter) => labels.push(Label::Letter(*letter)),
            None => labels.extend((0..ellipsis_rank).map(|i| Label::Ellipsis(i as isize - ellipsis_rank as isize))),
        }
    }
    labels
}

/// Returns the labels of the result of an equation without `->`.
fn implicit_output(inputs: &[Vec<Label>], ellipsis_rank: usize) -> Vec<Label> {
    let all: Vec<Label> = inputs.iter().flatten().copied().collect();
    let once = |label: &Label| all.iter().filter(|other| *other == label).count() == 1;
    let mut letters: Vec<Label> =
        all.iter().copied().filter(|label| matches!(label, Label::Letter(_)) && once(label)).collect();
    letters.sort_unstable();
    let mut output = labels(&[None], ellipsis_rank);
    output.extend(letters);
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(labels: &[Label]) -> String {
        labels
            .iter()
            .map(|label| match label {
                Label::Letter(letter) => letter.to_string(),
                Label::Ellipsis(position) => format!("({position})"),
            })
            .collect()
    }

    #[test]
    fn explicit_and_implicit_results() {
        let table = [
            ("ij,jk->ki", vec![2, 2], "ki"),
            ("ij,jk", vec![2, 2], "ik"),
            ("ba", vec![2], "ab"),
            ("ii", vec![2], ""),
            ("bA", vec![2], "Ab"),
            ("... i, i ...", vec![3, 2], "(-2)(-1)"),
            ("i...->...i", vec![3], "(-2)(-1)i"),
            ("ij->", vec![2], ""),
        ];
        for (equation, ranks, output) in table {
            assert_eq!(text(&Equation::parse(equation, &ranks).unwrap().output), output, "{equation}");
        }
    }

    #[test]
    fn refusals() {
        let table = [
            ("ij,jk->ik", vec![2, 1], "does not match the number of dimensions (1) for operand 1"),
            ("ij...", vec![1], "is more than the number of dimensions (1) for operand 0"),
            ("i,j", vec![1], "fewer operands"),
            ("i", vec![1, 1], "more operands"),
            ("i->j", vec![1], "output subscript j does not appear"),
            ("i->ii", vec![1], "output subscript i appears more than once"),
            ("i.", vec![1], "not part of any ellipsis"),
            ("i1", vec![2], "subscripts must be in [a-zA-Z]"),
            ("......", vec![1], "already found"),
        ];
        for (equation, ranks, part) in table {
            let error = Equation::parse(equation, &ranks).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
