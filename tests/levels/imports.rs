//! The imports of a crate: imports between its files, and imports of items of other crates.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::lexer::{Token, tokens, without_comments_and_literals, without_tests};
use super::scopes::{Module, Path, Scope, scopes};

/// An import: a file, and the file or item that it imports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    pub from: String,
    /// The imported file of the crate, or the path of the imported item of another crate.
    pub to: String,
    line: usize,
    path: String,
}

/// The files of a crate by module, without the files that are for tests only, and their imports.
pub struct Crate {
    pub files: BTreeMap<Module, String>,
    /// The first import for each pair of files.
    pub imports: Vec<Import>,
    /// The other paths: every import of an item of another crate, and paths that begin with an unknown name, such as `T::new`.
    pub external: Vec<Import>,
}

/// The path of a file, its module, and the tokens of its code.
type Code<'s> = (&'s str, Module, Vec<Token<'s>>);

/// Returns the module of a file: `kernel/conv/mod.rs` is `["kernel", "conv"]`.
fn module_of(file: &str) -> Module {
    let mut module: Module = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod" || last == "lib") {
        module.pop();
    }
    module
}

/// Returns the files that are not for tests only. Each of `texts` is a path from the crate's `src` and a text without comments.
fn library_files<'s>(texts: &'s [(&str, String)]) -> Vec<Code<'s>> {
    let mut kept = Vec::new();
    let mut for_tests = BTreeSet::new();
    for (file, code) in texts {
        let module = module_of(file);
        let (tokens, modules) = without_tests(&tokens(code));
        for name in modules {
            let mut inner = module.clone();
            inner.push(name.to_owned());
            for_tests.insert(inner);
        }
        kept.push((*file, module, tokens));
    }
    kept.retain(|(_, module, _)| !(1..=module.len()).any(|length| for_tests.contains(&module[..length])));
    kept
}

impl Crate {
    /// Reads the imports in `sources`. Each source is a path from the crate's `src` and a text.
    pub fn read(sources: &[(String, String)]) -> Self {
        let texts: Vec<(&str, String)> =
            sources.iter().map(|(file, text)| (file.as_str(), without_comments_and_literals(text))).collect();
        let kept = library_files(&texts);
        let files: BTreeMap<Module, String> =
            kept.iter().map(|(file, module, _)| (module.clone(), (*file).to_owned())).collect();
        let scopes: Vec<_> = kept
            .iter()
            .flat_map(|(file, module, tokens)| scopes(tokens, module).into_iter().map(move |scope| (*file, scope)))
            .collect();
        let by_module: HashMap<&Module, &Scope> = scopes.iter().map(|(_, scope)| (&scope.module, scope)).collect();
        let (mut imports, mut external) = (BTreeMap::<(String, String), Import>::new(), BTreeSet::new());
        for (file, scope) in scopes.iter().filter(|(file, _)| *file != "lib.rs") {
            for Path { segments, line } in &scope.paths {
                let from = (*file).to_owned();
                let path = segments.join("::");
                let Some(module) = resolve(&by_module, &scope.module, segments, 0) else {
                    let to = external_item(&by_module, scope, segments).join("::");
                    external.insert(Import { from, to, line: *line, path });
                    continue;
                };
                // An inline module belongs to the file of the module that contains it.
                let target = (0..=module.len()).rev().find_map(|length| files.get(&module[..length]));
                let Some(to) = target.filter(|to| *to != *file && *to != "lib.rs").cloned() else { continue };
                let import = Import { from: from.clone(), to: to.clone(), line: *line, path };
                let known = imports.entry((from, to)).or_insert_with(|| import.clone());
                if import.line < known.line {
                    *known = import;
                }
            }
        }
        Crate { files, imports: imports.into_values().collect(), external: external.into_iter().collect() }
    }

    /// Returns the imports of `path` in the files of `folder`.
    ///
    /// `folder` is a path from the crate's `src` to a folder or a file without `.rs`; an empty one is the whole crate. `path` is
    /// a module of the crate (`shape::compat`), or an item of another crate (`std::thread`).
    pub fn imports_of(&self, folder: &str, path: &str) -> Vec<String> {
        let begins = |whole: &str, separator: &str, part: &str| {
            part.is_empty()
                || whole.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with(separator))
        };
        let is_inside = |file: &str| begins(file.trim_end_matches(".rs"), "/", folder);
        let inner = self.imports.iter().filter(|import| begins(&module_of(&import.to).join("::"), "::", path));
        let outer = self.external.iter().filter(|import| begins(&import.to, "::", path));
        inner.chain(outer).filter(|import| is_inside(&import.from)).map(Import::to_string).collect()
    }

    /// Returns the imports that point from a lower to a higher level. `levels` are the names of folders and files, lowest first.
    pub fn upward(&self, levels: &[String]) -> Vec<String> {
        let level = |file: &str| {
            let name = file.split('/').next().unwrap_or_default().trim_end_matches(".rs");
            levels.iter().position(|level| level == name).unwrap_or_else(|| panic!("docs/levels.md lacks {name}"))
        };
        let points_up = |import: &&Import| level(&import.to) > level(&import.from);
        self.imports.iter().filter(points_up).map(Import::to_string).collect()
    }

    /// Returns a shortest circle of imports for each file that is in a circle, except for files of circles that were already found.
    pub fn circles(&self) -> Vec<Vec<&Import>> {
        let mut from: BTreeMap<&str, Vec<&Import>> = BTreeMap::new();
        for import in &self.imports {
            from.entry(&import.from).or_default().push(import);
        }
        let mut circles: Vec<Vec<&Import>> = Vec::new();
        for &start in from.keys() {
            if circles.iter().flatten().any(|import| import.from == start) {
                continue;
            }
            // This breadth-first search finds a shortest circle through `start`.
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

/// Returns the module that has the item at the path `segments`, which is written in `module`.
///
/// Returns `None` if the item lies in another crate, or if the path begins with no known name.
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
            // This resolves a re-export. The result is `None` if the item is in another crate.
            return resolve(scopes, &base, &path, depth + 1);
        }
    }
    Some(base)
}

/// Returns the whole path of an item of another crate: the names that `use` lines bind are replaced by their paths.
fn external_item<'s>(scopes: &HashMap<&Module, &Scope<'s>>, scope: &Scope<'s>, segments: &[&'s str]) -> Vec<&'s str> {
    let root = scopes.get(&Module::new());
    let mut path = segments.to_vec();
    for _ in 0..8 {
        let (known, used) = match path[..] {
            ["crate", name, ..] => (root.and_then(|root| root.exported.get(name)), 2),
            [name, ..] => (scope.bound.get(name), 1),
            [] => (None, 0),
        };
        match known {
            Some(known) if known[..] != path[..used] => path = known.iter().chain(&path[used..]).copied().collect(),
            _ => break,
        }
    }
    path
}
