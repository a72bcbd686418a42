//! Imports go down only. The list of levels stands in `docs/levels.md`; this test reads it, reads every import of the crates,
//! and fails by file, line and import on one that points up and on every circle of files.
//!
//! An import is what a `use` line names, and a path in the code that begins with `crate`, `super`, `self`, a child module or an
//! imported name. Re-exports are followed to the file that has the item, and are no imports themselves. Test code does not count.
//! What is read is text: an item that a macro of another crate makes is not seen.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::sources::{files, text};

/// A module's path from the root of its crate.
type Module = Vec<String>;

/// The most blocks that the whole workspace may have.
const UNSAFE_BLOCKS: usize = 40;

/// One token of a Rust file.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Token<'s> {
    text: &'s str,
    line: usize,
}

/// The text with comments and the insides of literals blanked out; lines stay where they are.
fn without_comments_and_literals(source: &str) -> String {
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

fn ends_in_word(text: &str) -> bool {
    text.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The length of a comment, which may contain others.
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

/// The length of `r"…"` or `r#"…"#`, with a `b` or `c` before it or not.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.trim_start_matches(['b', 'c']).strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inside = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - inside.len();
    Some(inside.find(&close).map_or(rest.len(), |end| start + end + close.len()))
}

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

/// Whether a `'` begins a character and no lifetime.
fn is_character(rest: &str) -> bool {
    let mut characters = rest.chars().skip(1);
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

/// Names, `::` and single signs.
fn tokens(code: &str) -> Vec<Token<'_>> {
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

/// The position after the bracket that closes the one at `open`.
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

/// The tokens without items under `#[cfg(test)]`, and the names of the modules in files of their own that are for tests.
fn without_tests<'s>(tokens: &[Token<'s>]) -> (Vec<Token<'s>>, Vec<&'s str>) {
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
        // Other attributes, then the item.
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

/// A path that a file names.
#[derive(Clone, Debug, PartialEq)]
struct Path<'s> {
    segments: Vec<&'s str>,
    line: usize,
}

/// What the code of one module says: inline modules stand beside the file's own.
#[derive(Debug, Default)]
struct Scope<'s> {
    module: Module,
    /// The names that `use` lines bind, with their paths.
    bound: HashMap<&'s str, Vec<&'s str>>,
    /// The same of `pub use` lines.
    exported: HashMap<&'s str, Vec<&'s str>>,
    /// Everything imported or named, but for re-exports.
    paths: Vec<Path<'s>>,
}

/// The scopes of a file.
fn scopes<'s>(tokens: &[Token<'s>], module: &Module) -> Vec<Scope<'s>> {
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
                // `impl Trait + use<'a>` is no import.
                if word(at + 1) == "<" {
                    at += 1;
                    continue;
                }
                let is_export = before == "pub" || before == ")";
                let scope = &mut open.last_mut().expect("the file's own").0;
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
                    open.last_mut().expect("the file's own").0.paths.push(Path { segments, line });
                }
            }
            _ => at += 1,
        }
    }
    done.extend(open.into_iter().map(|(scope, _)| scope));
    done
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Reads one tree of a `use` line from `at`, and returns where it ends.
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

/// An arrow from a file to one that it imports from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Import {
    from: String,
    to: String,
    line: usize,
    path: String,
}

/// The files of a crate by module, without those for tests alone, and every import among them.
struct Crate {
    files: BTreeMap<Module, String>,
    imports: Vec<Import>,
}

/// `kernel/conv/mod.rs` is `["kernel", "conv"]`.
fn module_of(file: &str) -> Module {
    let mut module: Module = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod" || last == "lib") {
        module.pop();
    }
    module
}

impl Crate {
    /// Reads the imports among `sources`, of which each is a path from the crate's `src` and a text.
    fn read(sources: &[(String, String)]) -> Self {
        let cleaned: Vec<_> = sources.iter().map(|(_, text)| without_comments_and_literals(text)).collect();
        let mut kept = Vec::new();
        let mut for_tests = BTreeSet::new();
        for ((file, _), code) in sources.iter().zip(&cleaned) {
            let module = module_of(file);
            let (tokens, modules) = without_tests(&tokens(code));
            for name in modules {
                let mut inner = module.clone();
                inner.push(name.to_owned());
                for_tests.insert(inner);
            }
            kept.push((file, module, tokens));
        }
        kept.retain(|(_, module, _)| !(1..=module.len()).any(|length| for_tests.contains(&module[..length])));
        let files: BTreeMap<Module, String> =
            kept.iter().map(|(file, module, _)| (module.clone(), (*file).clone())).collect();
        let scopes: Vec<_> = kept
            .iter()
            .flat_map(|(file, module, tokens)| scopes(tokens, module).into_iter().map(move |scope| (*file, scope)))
            .collect();
        let by_module: HashMap<&Module, &Scope> = scopes.iter().map(|(_, scope)| (&scope.module, scope)).collect();
        // One for each pair of files, the first that is written.
        let mut imports: BTreeMap<(String, String), Import> = BTreeMap::new();
        for (file, scope) in scopes.iter().filter(|(file, _)| *file != "lib.rs") {
            for Path { segments, line } in &scope.paths {
                let Some(module) = resolve(&by_module, &scope.module, segments, 0) else { continue };
                // An inline module lies in the file of the one around it.
                let target = (0..=module.len()).rev().find_map(|length| files.get(&module[..length]));
                let Some(to) = target.filter(|to| *to != *file && *to != "lib.rs") else { continue };
                let (from, to) = ((*file).clone(), to.clone());
                let import = Import { from: from.clone(), to: to.clone(), line: *line, path: segments.join("::") };
                let known = imports.entry((from, to)).or_insert_with(|| import.clone());
                if import.line < known.line {
                    *known = import;
                }
            }
        }
        Crate { files, imports: imports.into_values().collect() }
    }

    /// The imports that point up. `levels` are the names of folders and files, lowest first.
    fn upward(&self, levels: &[String]) -> Vec<String> {
        let level = |file: &str| {
            let name = file.split('/').next().unwrap_or_default().trim_end_matches(".rs");
            levels.iter().position(|level| level == name).unwrap_or_else(|| panic!("docs/levels.md lacks {name}"))
        };
        let points_up = |import: &&Import| level(&import.to) > level(&import.from);
        self.imports.iter().filter(points_up).map(Import::to_string).collect()
    }

    /// A shortest circle through each file that is in one and in none that was found before it.
    fn circles(&self) -> Vec<Vec<&Import>> {
        let mut from: BTreeMap<&str, Vec<&Import>> = BTreeMap::new();
        for import in &self.imports {
            from.entry(&import.from).or_default().push(import);
        }
        let mut circles: Vec<Vec<&Import>> = Vec::new();
        for &start in from.keys() {
            if circles.iter().flatten().any(|import| import.from == start) {
                continue;
            }
            // Breadth first, from the start back to it.
            let mut reached: HashMap<&str, &Import> = HashMap::new();
            let mut queue = VecDeque::from([start]);
            while let Some(file) = queue.pop_front().filter(|_| !reached.contains_key(start)) {
                for import in from.get(file).into_iter().flatten() {
                    if !reached.contains_key(import.to.as_str()) {
                        reached.insert(&import.to, import);
                        queue.push_back(&import.to);
                    }
                }
            }
            let Some(mut import) = reached.get(start) else { continue };
            let mut circle = vec![*import];
            while import.from != start {
                import = &reached[import.from.as_str()];
                circle.push(import);
            }
            circle.reverse();
            circles.push(circle);
        }
        circles
    }
}

impl std::fmt::Display for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}:{}: {} (in {})", self.from, self.line, self.path, self.to)
    }
}

/// The module in which a path ends that is named in `module`; `None` for what lies in another crate, or is no module's.
fn resolve(scopes: &HashMap<&Module, &Scope>, module: &Module, segments: &[&str], depth: usize) -> Option<Module> {
    let mut base = module.clone();
    let mut rest = segments;
    match rest.first()? {
        &"crate" => {
            base.clear();
            rest = &rest[1..];
        }
        &"self" => rest = &rest[1..],
        &"super" => {
            while rest.first() == Some(&"super") {
                base.pop();
                rest = &rest[1..];
            }
        }
        first => {
            let mut child = base.clone();
            child.push((*first).to_owned());
            if !scopes.contains_key(&child) {
                let path = scopes.get(module)?.bound.get(first).filter(|path| depth < 8 && path[..] != *segments)?;
                let path: Vec<&str> = path.iter().chain(&rest[1..]).copied().collect();
                return if path[0] == *first { None } else { resolve(scopes, module, &path, depth + 1) };
            }
        }
    }
    while let Some(next) = rest.first() {
        let mut child = base.clone();
        child.push((*next).to_owned());
        if !scopes.contains_key(&child) {
            break;
        }
        base = child;
        rest = &rest[1..];
    }
    if let Some(path) = rest.first().and_then(|name| scopes.get(&base)?.exported.get(name)).filter(|_| depth < 8) {
        let path: Vec<&str> = path.iter().chain(&rest[1..]).copied().collect();
        if path != rest {
            // What is re-exported from another crate is nobody's here.
            return resolve(scopes, &base, &path, depth + 1);
        }
    }
    Some(base)
}

/// The lines of the block in `docs/levels.md` that README and CONTRIBUTING show too.
fn block(page: &str) -> Vec<&str> {
    let lines = page.lines().skip_while(|line| *line != "```levels").skip(1);
    lines.take_while(|line| *line != "```").collect()
}

/// The crates and their levels, lowest first: `tensor: shape < scalar < …`, where a line may go on in the next one.
fn levels() -> Vec<(String, Vec<String>)> {
    let page = text("docs/levels.md");
    let whole = block(&page).join("\n").replace("\n ", " ");
    whole
        .lines()
        .map(|line| {
            let (name, levels) = line.split_once(':').unwrap_or_else(|| panic!("docs/levels.md: {line}"));
            (name.trim().to_owned(), levels.split('<').map(|level| level.trim().to_owned()).collect())
        })
        .collect()
}

fn sources_of(name: &str) -> Vec<(String, String)> {
    let folder = format!("crates/{name}/src/");
    let relative = |(path, text): (String, String)| (path[folder.len()..].to_owned(), text);
    files(&folder).into_iter().map(relative).collect()
}

#[test]
fn no_import_points_up_and_none_makes_a_circle() {
    let (mut wrong, mut count) = (String::new(), 0);
    for (name, levels) in levels() {
        let read = Crate::read(&sources_of(&name));
        count += read.imports.len();
        let folders: BTreeSet<&str> =
            read.files.keys().filter_map(|module| module.first()).map(String::as_str).collect();
        let listed: BTreeSet<&str> = levels.iter().map(String::as_str).collect();
        assert_eq!(listed, folders, "docs/levels.md and crates/{name}/src");
        for import in read.upward(&levels) {
            wrong += &format!("\npoints up: crates/{name}/src/{import}");
        }
        for circle in read.circles() {
            wrong += &format!("\na circle in crates/{name}/src:");
            circle.iter().for_each(|import| wrong += &format!("\n    {import}"));
        }
    }
    assert!(count > 500, "only {count} imports were found");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_crate_is_listed() {
    let listed: BTreeSet<String> = levels().into_iter().map(|(name, _)| name).collect();
    let crates: BTreeSet<String> =
        files("crates/").iter().filter_map(|(path, _)| path.split('/').nth(1)).map(str::to_owned).collect();
    assert_eq!(listed, crates, "docs/levels.md and the folders of crates/");
}

/// The part of `docs/levels.md` that says where `unsafe` may be: the line that begins so.
const WHERE: &str = "`unsafe` is allowed in ";

/// What the line with [`WHERE`] lists: folders that end in `/` and files.
fn where_unsafe_may_be() -> Vec<String> {
    let page = text("docs/levels.md");
    let line = page.lines().find(|line| line.starts_with(WHERE)).expect("docs/levels.md says where `unsafe` may be");
    line[WHERE.len()..].split('`').skip(1).step_by(2).map(|path| format!("crates/{path}")).collect()
}

#[test]
fn unsafe_code_is_where_it_may_be_and_there_is_little_of_it() {
    let allowed = where_unsafe_may_be();
    let mut blocks = 0;
    for (path, text) in files("crates/") {
        let code = without_comments_and_literals(&text);
        let tokens = tokens(&code);
        for pair in tokens.windows(2).filter(|pair| pair[0].text == "unsafe") {
            assert!(
                allowed.iter().any(|place| path == *place || (place.ends_with('/') && path.starts_with(place))),
                "{path}:{}: `unsafe` is allowed in {allowed:?} only",
                pair[0].line
            );
            blocks += usize::from(pair[1].text == "{");
        }
    }
    assert!(blocks > 0, "no `unsafe` block was found, which cannot be");
    assert!(blocks <= UNSAFE_BLOCKS, "{blocks} blocks of unsafe code; {UNSAFE_BLOCKS} are enough");
}

#[test]
fn every_page_shows_the_same_levels_and_the_same_places_of_unsafe_code() {
    let levels = text("docs/levels.md");
    let said = levels.lines().find(|line| line.starts_with(WHERE)).expect("docs/levels.md says where `unsafe` may be");
    for page in ["README.md", "CONTRIBUTING.md"] {
        let shown = text(page);
        assert_eq!(block(&shown), block(&levels), "{page} and docs/levels.md");
        let places: Vec<&str> = shown.lines().filter(|line| line.contains(WHERE)).collect();
        assert_eq!(places, [said], "{page} and docs/levels.md on where `unsafe` may be");
    }
}

/// A crate of a few files, for the tests of this test.
fn synthetic(files: &[(&str, &str)]) -> Crate {
    Crate::read(&files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect::<Vec<_>>())
}

fn all(read: &Crate) -> Vec<String> {
    read.imports.iter().map(Import::to_string).collect()
}

#[test]
fn an_import_that_points_up_is_found_however_it_is_written() {
    let levels = ["low", "high"].map(str::to_owned);
    for import in [
        "use crate::high::run::Run;",
        "pub(crate) fn f() {}\nuse crate::{high::{run::{self as r, Run}}};",
        "fn f() { crate::high::run::go() }",
        "fn f() { super::super::high::run::go() }",
        "use crate::Run;",
        "use crate::high;\nfn f() { high::run::go() }",
        "macro_rules! m { () => { $crate::high::run::go() } }",
        "mod inner { use super::super::super::high::run::Run; }",
    ] {
        let read = synthetic(&[
            ("lib.rs", "mod low; mod high; pub use high::run::Run;"),
            ("low/mod.rs", "pub mod data;"),
            ("low/data.rs", import),
            ("high/mod.rs", "pub mod run; pub use run::Run;"),
            ("high/run.rs", "use crate::low::data; pub struct Run; pub fn go() {}"),
        ]);
        let found = read.upward(&levels);
        assert!(found.iter().any(|found| found.ends_with("(in high/run.rs)")), "{import}: {found:?}");
        assert!(found.iter().all(|found| found.starts_with("low/data.rs:")), "{import}: {found:?}");
        assert_eq!(read.circles().len(), 1, "{import}");
    }
}

#[test]
fn what_is_no_import_is_not_found() {
    let read = synthetic(&[
        ("lib.rs", "mod low; mod high;"),
        ("low/mod.rs", "pub mod data; pub use data::Data; pub(crate) use data::other; #[cfg(test)] mod checks;"),
        (
            "low/data.rs",
            "// crate::high::a
             /* use crate::high::run::Run; /* crate::high::b */ */
             /// [`Run`](crate::high::run::Run)
             #[cfg(test)]
             use crate::high::run::Run;
             const TEXT: &str = \"crate::high::run\";
             const RAW: &str = r#\"crate::high::\"run\"#;
             fn f<'a>(c: char) -> bool { c == '\"' || c == 'a' }
             #[cfg(test)]
             #[allow(unused)]
             mod tests { use crate::high::run::Run; fn f() { crate::high::run::go() } }
             fn g() { std::mem::take(&mut x); T::high::run() }",
        ),
        ("low/checks.rs", "use crate::high::run::Run;"),
        ("high/mod.rs", "pub mod run;"),
        ("high/run.rs", "use super::super::low::Data;"),
    ]);
    assert_eq!(all(&read), ["high/run.rs:1: super::super::low::Data (in low/data.rs)"]);
    assert!(read.circles().is_empty());
}

#[test]
fn a_circle_of_files_in_one_folder_is_found() {
    let read = synthetic(&[
        ("lib.rs", "mod low;"),
        ("low/mod.rs", "mod a; mod b; mod c; mod d;"),
        ("low/a.rs", "use super::b::B;"),
        ("low/b.rs", "\nuse crate::low::c::C;"),
        ("low/c.rs", "\n\nfn f() { super::a::go() }"),
        ("low/d.rs", "use super::a::A;"),
    ]);
    let circles = read.circles();
    assert_eq!(circles.len(), 1);
    let circle: Vec<String> = circles[0].iter().map(|import| import.to_string()).collect();
    assert_eq!(
        circle,
        [
            "low/a.rs:1: super::b::B (in low/b.rs)",
            "low/b.rs:2: crate::low::c::C (in low/c.rs)",
            "low/c.rs:3: super::a::go (in low/a.rs)"
        ]
    );
    assert!(read.upward(&["low".to_owned()]).is_empty());
}
