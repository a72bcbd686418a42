//! The hints of errors, warnings and compile errors name functions and macros that exist, and the expressions in hints compile.

use std::collections::BTreeSet;

use wengert::compat::Rules;
use wengert::prelude::*;
use wengert::tensor::ops::try_mse_loss;

use crate::compile_errors::{Compiler, OPENING};
use crate::sources::files;

/// Functions and macros of Rust, of PyTorch and of the user that hints name, and two in the code around a hint.
const FOREIGN: [&str; 8] = ["stringify!", "fold", "save_file", "state_dict", "default", "g", "format!", "map_or_else"];

/// Expressions that need features which these tests do not build. Only their names are compared.
const OTHER_FEATURES: [&str; 2] = ["Method::Rodas4", "p.log_prob(x) - q.log_prob(x)"];

/// Parts of expressions that stand for other code, such as an ellipsis, and this code.
const REPLACED: [(&str, &str); 9] = [
    ("gradcheck(", "wengert::autograd::gradcheck("),
    ("Accuracy::", "wengert::nn::metrics::Accuracy::"),
    ("{T}", "f32"),
    ("T::", "f32::"),
    ("Tape::", "Tape::<f32>::"),
    ("training(..)", "training(generator)"),
    ("|x| ..", "|x| x.sum(..)"),
    ("|[x, y]| ..", "|[x, y]| (x * y).sum(..)"),
    ("|list| ..", "|list| (list[0] * list[1]).sum(..)"),
];

/// Methods that hints name without an object, each with an object on which it can be called.
const OBJECTS: [(&str, &str); 2] = [("cast::<", "mask"), ("set_frozen(", "parameter.clone()")];

/// Declares the names in expressions. The three programs differ in `x`: a tensor, a variable, a number.
const NAMES: &str = "let generator = &mut Generator::new(0); let tape = Tape::<f32>::new(); let dim = 0;
    let a = Tensor::<f32>::ones([3, 3]); let (y, target, other, tensor, this) = (a.clone(), &a, &a, &a, &a);
    let (mat1, mat2) = (&a, &a);
    let index = Tensor::from([0i64, 1]); let mask = a.gt(0.0); let list = vec![a.clone(), a.clone()];
    let (p, parameter, model) = (Parameter::new(a.clone()), Parameter::new(a.clone()), Linear::<f32>::new(3, 3, generator));
    let gradients = tape.parameter(&parameter).sum(..).backward(); let terms = vec![tape.constant(1.0)].into_iter();";
const X: [&str; 3] = ["let x = a.clone();", "let x = tape.var(&a);", "let x = 2.0f64;"];

/// Returns the sources of all crates, without tests.
fn sources() -> Vec<(String, String)> {
    let all_files = files("crates").into_iter();
    let crate_sources = all_files
        .filter(|(file, _)| file.contains("/src/") && !file.ends_with("tests.rs") && !file.contains("/tests/"));
    crate_sources.map(|(file, source)| (file, code(&source))).collect()
}

/// Returns the part of a source before its tests, without the lines that are comments.
fn code(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Returns true for a letter, a digit or `_`.
fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the names of all functions of a source, and of its macros with `!`.
fn defined(source: &str) -> Vec<String> {
    let name_length = |rest: &str| rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
    let words_after = |word: &'static str| source.split(word).skip(1).map(|rest| &rest[..name_length(rest)]);
    words_after("fn ").map(str::to_owned).chain(words_after("macro_rules! ").map(|name| format!("{name}!"))).collect()
}

/// Returns the names that are called in a text: `name(` and `name!(`.
fn called(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (position, _) in text.match_indices('(') {
        let (before, mark) = match text[..position].strip_suffix('!') {
            Some(before) => (before, "!"),
            None => (&text[..position], ""),
        };
        let start = before.char_indices().rev().take_while(|(_, c)| is_of_name(*c)).last().map_or(position, |(i, _)| i);
        let name = &before[start.min(before.len())..];
        if name.starts_with(|c: char| c.is_ascii_lowercase()) {
            names.push(format!("{name}{mark}"));
        }
    }
    names
}

/// Returns the texts of hints in a source: the string after a word that begins a hint, up to its end. The strings in arms of a `match` count
/// too, because many remedies are there.
fn hints(source: &str) -> Vec<String> {
    let after_hint = source.match_indices("hint: ").map(|(start, word)| &source[start + word.len()..]);
    let words = ["let hint = ", "with_hint(", "note = ", "label = "];
    let strings_after =
        words.iter().flat_map(|word| source.match_indices(word).map(|(at, word)| &source[at + word.len()..]));
    // The string begins in the same statement.
    let strings = strings_after.filter_map(|rest| {
        let quote = rest.find('"').filter(|&quote| !rest[..quote].contains(';'))?;
        Some(&rest[quote + 1..])
    });
    let arms = source.match_indices("=> \"").map(|(at, word)| &source[at + word.len()..]);
    after_hint.map(|rest| rest.strip_prefix('"').unwrap_or(rest)).chain(strings).chain(arms).map(literal).collect()
}

/// Returns a string literal up to its end, with joined lines.
fn literal(rest: &str) -> String {
    let mut end = 0;
    while let Some(found) = rest[end..].find('"') {
        end += found;
        if !rest[..end].ends_with('\\') {
            break;
        }
        end += 1;
    }
    let lines: Vec<&str> = rest[..end].split("\\\n").collect();
    let joined = lines.iter().enumerate().map(|(i, line)| if i == 0 { line } else { line.trim_start() });
    joined.collect()
}

/// Returns the expressions in the code spans of a hint: the spans that call a function or name it with a path.
fn spans(hint: &str) -> Vec<String> {
    let spans = hint.split('`').skip(1).step_by(2).filter(|span| span.contains('(') || span.contains("::"));
    spans.filter(|span| !span.starts_with('#')).map(str::to_owned).collect()
}

/// Returns the calls of methods in a text: `name.method(arguments)`.
fn method_calls(text: &str) -> Vec<&str> {
    let mut calls = Vec::new();
    let mut from = 0;
    while let Some(dot) = text[from..].find('.').map(|dot| from + dot) {
        from = dot + 1;
        let start = text[..dot].char_indices().rev().take_while(|(_, c)| is_of_name(*c)).last().map_or(dot, |(i, _)| i);
        let method = text[from..].find(|c: char| !is_of_name(c)).unwrap_or(0);
        if start == dot || method == 0 || !text[from + method..].starts_with('(') {
            continue;
        }
        let mut depth = 0;
        let end = text[from..].find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ')' && depth == 0
        });
        let end = from + 1 + end.unwrap_or_else(|| panic!("a call without an end: {text}"));
        calls.push(&text[start..end]);
        from = end;
    }
    calls
}

/// Returns the statement that compiles the expression of a hint.
fn statement(span: &str) -> String {
    let mut text = span.to_owned();
    for (from, to) in REPLACED {
        // `T::` is replaced only where it is a whole name.
        let at_start = text.starts_with(from) || text.contains(&format!(" {from}")) || !from.starts_with('T');
        text = if at_start { text.replace(from, to) } else { text };
    }
    match text.strip_prefix("let f = ") {
        Some(closure) => format!("let f = {}; let _ = grad(f, &x);", closure.trim_end_matches(';')),
        None if text.starts_with('.') => format!("let _ = x{text};"),
        None => {
            let object = OBJECTS.iter().find(|(method, _)| text.starts_with(method));
            format!("let _ = {}{text};", object.map_or(String::new(), |(_, object)| format!("{object}.")))
        }
    }
}

/// Returns the statements that do not compile with any declaration of `x`, with the messages of the last one.
fn refused(mut statements: Vec<String>) -> (Vec<String>, String) {
    let compiler = Compiler::new();
    let mut last = String::new();
    for x in X {
        let names = format!("\n{NAMES}\n{x}\n");
        let first_line = (OPENING.to_owned() + &names).matches('\n').count() + 2;
        let blocks: String =
            statements.iter().map(|statement| format!("{{ let mut b = a.clone(); {statement} }}\n")).collect();
        let Some(message) = compiler.message("", &format!("{names}{blocks}")) else {
            return (Vec::new(), String::new());
        };
        let lines: BTreeSet<usize> = error_lines(&message).collect();
        let kept = statements.into_iter().enumerate().filter(|(i, _)| lines.contains(&(first_line + i)));
        statements = kept.map(|(_, statement)| statement).collect();
        assert!(!statements.is_empty(), "the declarations do not compile: {message}");
        last = message;
    }
    (statements, last)
}

/// Returns the line of each error in the compiler's messages.
fn error_lines(message: &str) -> impl Iterator<Item = usize> + '_ {
    let errors = message.split("\nerror").map(|error| error.split_once("program.rs:").map_or("", |(_, place)| place));
    errors.filter_map(|place| place.split(':').next()?.parse().ok())
}

#[test]
fn the_code_in_hints_exists() {
    let sources = sources();
    let mut known: BTreeSet<String> = FOREIGN.map(str::to_owned).into();
    for (_, source) in &sources {
        for name in defined(source) {
            known.insert(name.clone());
            // The attribute `twins` generates functions with these names.
            if let Some(plain) = name.strip_prefix("try_") {
                known.extend([plain.to_owned(), format!("{plain}_keepdim"), format!("{plain}_")]);
            }
        }
    }
    let (mut count, mut unknown) = (0, Vec::new());
    for (file, source) in &sources {
        for name in hints(source).iter().flat_map(|hint| called(hint)) {
            count += 1;
            if !known.contains(&name) {
                unknown.push(format!("{file}: `{name}`"));
            }
        }
    }
    assert!(unknown.is_empty(), "hints name functions that do not exist:\n{}", unknown.join("\n"));
    assert!(count >= 50, "only {count} names were found");
}

/// Hints with the data of an error in them, such as `reshape({shape})`, are compiled below.
#[test]
fn the_expressions_in_hints_compile() {
    let found: BTreeSet<String> =
        sources().iter().flat_map(|(_, source)| hints(source)).flat_map(|hint| spans(&hint)).collect();
    let statements: Vec<String> = found
        .iter()
        .filter(|span| !OTHER_FEATURES.contains(&span.as_str()))
        .map(|span| statement(span))
        .filter(|statement| !statement.contains("({"))
        .collect();
    assert!(statements.len() >= 35, "only {statements:?} were found");
    let (wrong, message) = refused(statements);
    assert!(wrong.is_empty(), "hints have expressions that do not compile:\n{}\n{message}", wrong.join("\n"));
}

#[test]
fn the_expressions_in_hints_about_shapes_compile() {
    let ones = |sizes: &[usize]| Tensor::<f32>::ones(sizes);
    let under = |rules: Rules, a: &[usize], b: &[usize]| {
        let _guard = rules.scope();
        ones(a).try_sub(ones(b)).unwrap_err()
    };
    let errors = [
        ones(&[4, 32, 14, 14]).try_add(ones(&[32])).unwrap_err(),
        ones(&[32]).try_add(ones(&[4, 32, 14, 14])).unwrap_err(),
        ones(&[32]).try_expand([4, 32, 14, 14]).unwrap_err(),
        ones(&[2, 3]).try_add_(ones(&[4, 2, 3])).unwrap_err(),
        under(Rules::default().deny(), &[4, 1], &[4]),
        under(Rules::strict(), &[], &[4]),
        try_mse_loss(&ones(&[3, 1]), &ones(&[3])).unwrap_err(),
        ones(&[2, 3]).try_matmul(&ones(&[5, 3])).unwrap_err(),
        ones(&[2, 3]).try_matmul(&ones(&[2, 5])).unwrap_err(),
        ones(&[4, 3, 2, 2]).try_linear(ones(&[5, 12]), None).unwrap_err(),
        ones(&[2, 6, 5, 3]).try_conv2d(ones(&[4, 3, 2, 2]), None, &ConvOptions::default()).unwrap_err(),
        ones(&[2, 3]).try_item().unwrap_err(),
    ];
    let texts = errors.map(|error| error.to_string());
    let calls = |text: &String| -> Vec<String> {
        let hint = text.rsplit("hint: ").next().unwrap_or_default().replace("self.", "this.");
        method_calls(&hint).into_iter().map(|call| format!("let _ = {call};")).collect()
    };
    for text in &texts {
        assert!(text.contains("hint: "), "{text}");
    }
    let statements: Vec<String> = texts.iter().flat_map(calls).collect();
    assert!(statements.len() >= 7, "{statements:?} in {texts:?}");
    let (wrong, message) = refused(statements);
    assert!(wrong.is_empty(), "hints have expressions that do not compile:\n{}\n{message}", wrong.join("\n"));
}

#[test]
fn a_wrong_name_in_a_hint_is_found() {
    let source = "fn real() {}\nmacro_rules! some {}\nlet text = \"refused\\n  hint: `x.unreal(1)`, `some!(1)`, or \
                  b.real(2)\"; let hint = format!(\"a {name}.other({shape})\");";
    let names: Vec<String> = hints(source).iter().flat_map(|hint| called(hint)).collect();
    assert_eq!(names, ["unreal", "some!", "real", "other"]);
    assert_eq!(defined(source), ["real", "some!"]);
    assert_eq!(spans("`A::b`, `c`, `d(1)`, `#[e(f)]`"), ["A::b", "d(1)"]);
    assert_eq!(method_calls("b.reshape([2, (1)]), or x.t().sum(..), e.g. c"), ["b.reshape([2, (1)])", "x.t()"]);
}

#[test]
fn a_wrong_expression_in_a_hint_is_found() {
    let right =
        ["x.sum(..)", "tape.constant(&x)", "x.detach()", "T::from_f64(x)", "Tape::training(..)", "terms.last()"];
    let wrong = ["x.sum()", "Tape::non_finite", "y.dot()"];
    let statements = right.iter().chain(&wrong).map(|span| statement(span)).collect();
    let (refused, message) = refused(statements);
    assert_eq!(refused, wrong.map(statement), "{message}");
}
