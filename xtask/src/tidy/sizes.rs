//! Files up to 800 lines, with a note above 400; functions up to 70.
//!
//! A function of a test may be longer: a story is read from top to bottom.

use syn::visit::{self, Visit};

use super::{Finding, World};
use crate::tree::File;

const RULE: &str = "size";

/// Above this a file fails: nobody holds more in mind.
const FILE_LINES_MAX: usize = 800;
/// Above this a file is named: it is likely two files.
const FILE_LINES_NOTE: usize = 400;
/// A function fits a screen.
const FUNCTION_LINES_MAX: usize = 70;

/// See the module.
pub fn check(world: &World) -> Vec<Finding> {
    let files =
        world.tree.files.iter().filter(|file| file.is_rust() || file.path.ends_with(".sql"));
    files.flat_map(|file| check_file(file).into_iter().chain(check_functions(file))).collect()
}

fn check_file(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    let message = |limit| format!("{lines} lines, more than {limit}: split it by noun");
    if lines > FILE_LINES_MAX {
        Some(Finding::fault(&file.path, lines, RULE, message(FILE_LINES_MAX)))
    } else if lines > FILE_LINES_NOTE {
        Some(Finding::note(&file.path, lines, RULE, message(FILE_LINES_NOTE)))
    } else {
        None
    }
}

fn check_functions(file: &File) -> Vec<Finding> {
    if !file.is_rust() || file.name() == "tests.rs" || file.has_part("tests") {
        return Vec::new();
    }
    // Text that does not parse is the compiler's to report.
    let Ok(syntax) = syn::parse_file(&file.text) else { return Vec::new() };
    let mut functions = Functions { path: &file.path, found: Vec::new() };
    functions.visit_file(&syntax);
    functions.found
}

struct Functions<'file> {
    path: &'file str,
    found: Vec<Finding>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        let lines = last + 1 - first;
        if lines > FUNCTION_LINES_MAX {
            let name = &signature.ident;
            let message = format!("`{name}` has {lines} lines, more than {FUNCTION_LINES_MAX}");
            self.found.push(Finding::fault(self.path, first, RULE, message));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            self.measure(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            self.measure(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

/// `#[test]`, `#[tokio::test]` and their like, `#[cfg(test)]`.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let is_test = path.segments.last().is_some_and(|segment| segment.ident == "test");
        is_test || (path.is_ident("cfg") && is_cfg_test(attribute))
    })
}

fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    let condition = attribute.parse_args::<syn::Meta>();
    condition.is_ok_and(|condition| condition.path().is_ident("test"))
}

#[cfg(test)]
mod tests;
