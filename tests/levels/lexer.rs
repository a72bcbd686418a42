//! A lexer for the checks of this folder: it blanks comments and literals, splits code into tokens and drops test code.

/// One token of a Rust file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token<'s> {
    pub text: &'s str,
    pub line: usize,
}

/// Returns the text with comments, strings, character literals and characters beyond ASCII replaced by spaces. Line breaks stay where they
/// are.
pub fn without_comments_and_literals(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = String::with_capacity(source.len());
    let blank = |out: &mut String, from: usize, to: usize| {
        out.extend(bytes[from..to].iter().map(|&byte| if byte == b'\n' { '\n' } else { ' ' }));
    };
    let mut at = 0;
    while at < bytes.len() {
        let rest = &source[at..];
        let end = if rest.starts_with("//") {
            at + rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            at + block_comment(rest)
        } else if let Some(length) = raw_string(rest).filter(|_| !ends_in_word(&out)) {
            at + length
        } else if rest.starts_with('"') {
            at + quoted(rest, '"')
        } else if rest.starts_with('\'') && is_character(rest) {
            at + quoted(rest, '\'')
        } else {
            let character = rest.chars().next().unwrap_or(' ');
            out.push(if character.is_ascii() { character } else { ' ' });
            at += character.len_utf8();
            continue;
        };
        blank(&mut out, at, end);
        at = end;
    }
    out
}

/// Returns true if a text ends in a letter, a digit or `_`.
fn ends_in_word(text: &str) -> bool {
    text.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Returns the length of the block comment at the beginning of `rest`. The comment may contain other block comments.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Returns the length of the raw string literal at the beginning of `rest`, with or without the prefix `b` or `c`. Returns `None` if there
/// is none.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.trim_start_matches(['b', 'c']).strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inside = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - inside.len();
    Some(inside.find(&close).map_or(rest.len(), |end| start + end + close.len()))
}

/// Returns the length of the quoted literal at the beginning of `rest`, with its quotes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns true if the `'` at the beginning of `rest` begins a character literal and not a lifetime.
fn is_character(rest: &str) -> bool {
    let mut characters = rest.chars().skip(1);
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

/// Splits code into names, `::` and single characters.
pub fn tokens(code: &str) -> Vec<Token<'_>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    for (number, text) in code.lines().enumerate() {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push(Token { text: &rest[..length], line: number + 1 });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

/// Returns the position after the bracket that closes the bracket at `open`.
fn closed(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Returns the tokens without the items under `#[cfg(test)]`, and the names of the modules in other files that are for
/// tests only.
pub fn without_tests<'s>(tokens: &[Token<'s>]) -> (Vec<Token<'s>>, Vec<&'s str>) {
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let is_attribute = tokens[at].text == "#" && tokens.get(at + 1).is_some_and(|token| token.text == "[");
        let end = if is_attribute { closed(tokens, at + 1) } else { at };
        let attribute = &tokens[at..end];
        let has = |word: &str| attribute.iter().any(|token| token.text == word);
        if !(has("cfg") && has("test") && !has("not")) {
            let next = end.max(at + 1);
            kept.extend_from_slice(&tokens[at..next]);
            at = next;
            continue;
        }
        // Skips the other attributes of the item.
        let mut item = end;
        while tokens.get(item).is_some_and(|token| token.text == "#") {
            item = closed(tokens, item + 1);
        }
        let is_use = tokens[item..].iter().take(5).any(|token| token.text == "use");
        at = item;
        while at < tokens.len() {
            match tokens[at].text {
                ";" => {
                    at += 1;
                    break;
                }
                "{" if !is_use => {
                    at = closed(tokens, at);
                    break;
                }
                "(" | "[" | "{" => at = closed(tokens, at),
                _ => at += 1,
            }
        }
        let words: Vec<&str> = tokens[item..at].iter().map(|token| token.text).collect();
        if let [.., "mod", name, ";"] = words[..] {
            modules.push(name);
        }
    }
    (kept, modules)
}
