//! Checks the state of the git repository before a release.

use std::process::Command;

use crate::steps::Steps;
use crate::tools::root;

/// Returns the problems of the repository: uncommitted changes, and a tag at another commit.
///
/// # Errors
///
/// Returns the output of git if git fails.
pub fn check(steps: &Steps, version: &str) -> Result<Vec<String>, String> {
    let git =
        |words: &[&str]| steps.finish_quietly(Command::new("git").args(words).current_dir(root()));
    let status = git(&["status", "--porcelain"])?;
    let head = git(&["rev-parse", "HEAD"])?;
    let tag = format!("v{version}");
    let is_tag = !git(&["tag", "--list", &tag])?.is_empty();
    let tagged =
        if is_tag { Some(git(&["rev-parse", &format!("{tag}^{{commit}}")])?) } else { None };
    Ok(problems(&status, &tag, tagged.as_deref(), &head))
}

/// Returns the problems of a repository. `tagged` is the commit of the tag. The workflow of the release runs after the tag
/// was pushed, so the tag of the current commit is no problem.
fn problems(status: &str, tag: &str, tagged: Option<&str>, head: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let changed = status.lines().count();
    if changed > 0 {
        problems.push(format!("git: number of files with uncommitted changes: {changed}"));
    }
    if tagged.is_some_and(|tagged| tagged != head) {
        problems.push(format!("git: the tag {tag} already exists at another commit"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_tree_without_the_tag_has_no_problem() {
        assert!(problems("", "v0.1.0", None, "abc").is_empty());
        assert!(problems("", "v0.1.0", Some("abc"), "abc").is_empty());
    }

    #[test]
    fn changes_and_a_tag_at_another_commit_are_problems() {
        let found = problems(" M README.md\n?? new\n", "v0.1.0", Some("old"), "abc");
        assert!(found[0].ends_with("uncommitted changes: 2"), "{found:?}");
        assert!(found[1].contains("v0.1.0"), "{found:?}");
    }
}
