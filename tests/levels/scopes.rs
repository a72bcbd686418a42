//! The paths that the code of a module names, in its `use` lines and elsewhere.

use std::collections::HashMap;

use super::lexer::Token;

/// A module's path from the root of its crate.
pub type Module = Vec<String>;

/// A path that a file names.
#[derive(Clone, Debug, PartialEq)]
pub struct Path<'s> {
    pub segments: Vec<&'s str>,
    pub line: usize,
}

/// The paths of one module. An inline module has a scope of its own.
#[derive(Debug, Default)]
pub struct Scope<'s> {
    pub module: Module,
    /// The names that `use` lines bind, with their paths.
    pub bound: HashMap<&'s str, Vec<&'s str>>,
    /// The names that `pub use` lines bind, with their paths.
    pub exported: HashMap<&'s str, Vec<&'s str>>,
    /// Every path that is imported or named, without re-exports.
    pub paths: Vec<Path<'s>>,
}

/// Returns the scopes of a file: its own scope and one for each inline module.
pub fn scopes<'s>(tokens: &[Token<'s>], module: &Module) -> Vec<Scope<'s>> {
    let mut done = Vec::new();
    let mut open = vec![(Scope { module: module.clone(), ..Scope::default() }, 0usize)];
    let (mut depth, mut at) = (0usize, 0);
    let word = |at: usize| tokens.get(at).map_or("", |token: &Token<'s>| token.text);
    while at < tokens.len() {
        let Token { text, line } = tokens[at];
        match text {
            "mod" if word(at + 2) == "{" => {
                let mut inner = open[open.len() - 1].0.module.clone();
                inner.push(word(at + 1).to_owned());
                depth += 1;
                open.push((Scope { module: inner, ..Scope::default() }, depth));
                at += 3;
            }
            "{" => (depth, at) = (depth + 1, at + 1),
            "}" => {
                if open.len() > 1 && open[open.len() - 1].1 == depth {
                    done.extend(open.pop().map(|(scope, _)| scope));
                }
                (depth, at) = (depth.saturating_sub(1), at + 1);
            }
            "use" => {
                let before = at.checked_sub(1).map_or("", word);
                // `use<'a>` in `impl Trait + use<'a>` is not an import.
                if word(at + 1) == "<" {
                    at += 1;
                    continue;
                }
                let is_export = before == "pub" || before == ")";
                let scope = &mut open.last_mut().expect("the file has a scope").0;
                let mut named = Vec::new();
                at = tree(tokens, at + 1, &mut Vec::new(), &mut named);
                for (name, path) in named {
                    scope.bound.insert(name, path.segments.clone());
                    if is_export {
                        scope.exported.insert(name, path.segments);
                    } else {
                        scope.paths.push(path);
                    }
                }
            }
            _ if is_name(text) && word(at + 1) == "::" => {
                let mut segments = vec![text];
                let follows = at.checked_sub(1).is_some_and(|before| matches!(word(before), "::" | "."));
                at += 1;
                while word(at) == "::" && is_name(word(at + 1)) {
                    segments.push(word(at + 1));
                    at += 2;
                }
                if !follows {
                    open.last_mut().expect("the file has a scope").0.paths.push(Path { segments, line });
                }
            }
            _ => at += 1,
        }
    }
    done.extend(open.into_iter().map(|(scope, _)| scope));
    done
}

/// Returns true if a token is a name.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Reads one tree of a `use` line from `at`, adds the paths to `named`, and returns the position after the tree.
fn tree<'s>(
    tokens: &[Token<'s>],
    mut at: usize,
    prefix: &mut Vec<&'s str>,
    named: &mut Vec<(&'s str, Path<'s>)>,
) -> usize {
    let word = |at: usize| tokens.get(at).map_or(";", |token: &Token<'s>| token.text);
    let length = prefix.len();
    let line = tokens.get(at).map_or(0, |token| token.line);
    loop {
        match word(at) {
            "::" => at += 1,
            "{" => {
                at += 1;
                while word(at) != "}" && word(at) != ";" {
                    at = tree(tokens, at, prefix, named);
                    at += usize::from(word(at) == ",");
                }
                at += 1;
                break;
            }
            "*" => {
                named.push(("*", Path { segments: prefix.clone(), line }));
                at += 1;
                break;
            }
            name if is_name(name) => {
                prefix.push(name);
                at += 1;
                if word(at) == "::" {
                    continue;
                }
                let mut bound = name;
                if word(at) == "as" {
                    bound = word(at + 1);
                    at += 2;
                }
                let mut segments = prefix.clone();
                if name == "self" && segments.len() > 1 {
                    segments.pop();
                    if bound == "self" {
                        bound = segments[segments.len() - 1];
                    }
                }
                named.push((bound, Path { segments, line }));
                break;
            }
            _ => break,
        }
    }
    prefix.truncate(length);
    at
}
