//! The search of the documentation finds names of PyTorch and NumPy: each name is a public item, or an alias of the item to use instead.

use std::collections::BTreeSet;

use crate::sources::files;

/// Names that users of PyTorch and NumPy search for.
const NAMES: [&str; 83] = [
    // Tensors.
    "arange",
    "asarray",
    "astype",
    "concatenate",
    "degrees",
    "detach",
    "einsum",
    "empty",
    "empty_like",
    "expand_dims",
    "from_numpy",
    "full",
    "full_like",
    "gather",
    "item",
    "linspace",
    "long",
    "matmul",
    "mm",
    "msort",
    "mvlgamma",
    "nelement",
    "ndim",
    "ndimension",
    "newaxis",
    "no_grad",
    "numel",
    "numpy",
    "ones",
    "ones_like",
    "percentile",
    "pinverse",
    "psi",
    "quantile",
    "radians",
    "rand",
    "randn",
    "reshape",
    "split_with_sizes",
    "squeeze",
    "stack",
    "transpose",
    "unsqueeze",
    "view",
    "zeros",
    "zeros_like",
    // Transforms.
    "gradcheck",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "vmap",
    // Training and modules.
    "CircularPad1d",
    "clip_grad_norm_",
    "ConstantPad3d",
    "CosineSimilarity",
    "DataLoader",
    "eval",
    "Fold",
    "load_state_dict",
    "manual_seed",
    "MaxUnpool2d",
    "ModuleDict",
    "ModuleList",
    "named_parameters",
    "PairwiseDistance",
    "ParameterList",
    "ReflectionPad2d",
    "register_buffer",
    "register_forward_hook",
    "register_hook",
    "requires_grad",
    "ReplicationPad3d",
    "Sequential",
    "SGD",
    "state_dict",
    "StackDataset",
    "TensorDataset",
    "train",
    "Transformer",
    "Unfold",
    "UpsamplingBilinear2d",
    "zero_grad",
];

/// Returns the names of the public items of a source, and their aliases. A function `try_name` gives the name of its twin, `name`.
fn names(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut in_trait = false;
    for line in source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines() {
        in_trait = line.starts_with("pub trait ") || in_trait && !line.starts_with('}');
        let code = line.trim();
        if let Some(list) = code.strip_prefix("#[doc(alias") {
            names.extend(list.split('"').skip(1).step_by(2).map(str::to_owned));
        }
        let Some(item) = code.strip_prefix("pub ").or_else(|| in_trait.then_some(code)) else {
            continue;
        };
        let item = item.strip_prefix("const ").unwrap_or(item);
        let name = ["fn ", "struct ", "enum ", "trait ", "type "].iter().find_map(|kind| item.strip_prefix(kind));
        if let Some(name) = name.and_then(|name| name.split(|c: char| !c.is_alphanumeric() && c != '_').next()) {
            names.push(name.strip_prefix("try_").unwrap_or(name).to_owned());
        }
    }
    names
}

#[test]
fn each_name_is_a_public_item_or_an_alias() {
    let found: BTreeSet<String> = files("crates").iter().flat_map(|(_, source)| names(source)).collect();
    let missing: Vec<&str> = NAMES.into_iter().filter(|name| !found.contains(*name)).collect();
    assert_eq!(missing, [""; 0], "write #[doc(alias(..))] with these names at the items that replace them");
}

#[test]
fn items_and_aliases_are_found_and_private_functions_are_not() {
    let source = "
#[doc(alias(\"a\", \"b\"))]
pub const fn c() {}
#[doc(alias = \"D\")]
pub struct E<T>(T);
fn private() {}
pub trait Family {
    fn try_method(&self) {}
}
impl Family for E {
    fn implemented(&self) {}
    pub(crate) fn inside() {}
}
#[cfg(test)]
mod tests {
    pub fn check() {}";
    assert_eq!(names(source), ["a", "b", "c", "D", "E", "Family", "method"]);
}
