//! Tests the Java code of the page `docs/java-spring.md`. The task compiles the code with the test program in
//! `tests/java`. The test program runs the code and the configurations of the page against the Tamis server, the guard,
//! and Redis with the module.
//!
//! Spring, Jedis, Lettuce, Redisson and Redis OM are not installed. `tests/java/stubs` has the signatures that the page
//! uses. If the task cannot install Java and Guava, the task prints a message and skips the tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::Steps;
use crate::tools::{self, Outcome, root, works};

const PAGE: &str = "docs/java-spring.md";
const TESTS: &str = "tests/java";

/// Guava of Debian's package `libguava-java`.
const GUAVA: &str = "/usr/share/java/guava.jar";

/// Compiles the code of the page, and runs the test program.
pub fn test(steps: &Steps) -> Outcome {
    if let Err(why) = installed() {
        steps.skip("the Java code of the pages", &why);
        return Ok(());
    }
    let folder = root().join("target").join(TESTS);
    steps.check("javac with the Java code of the pages", || compile(steps, &folder))?;
    let program = tools::program();
    steps.run("Java and the server", test_program(&folder, "serve").arg(&program))?;
    steps.run("Java and the guard", test_program(&folder, "guard").arg(&program))?;
    if works(&mut Command::new("redis-server")) {
        let mut test = test_program(&folder, "module");
        test.arg(&program).arg("redis-server").arg(tools::module());
        steps.run("Java and the module", &mut test)?;
    } else {
        steps.skip("Java and the module", "Redis could not be installed");
    }
    Ok(())
}

/// Tests whether Java and Guava are installed.
///
/// # Errors
///
/// Returns why the tests are skipped.
pub fn installed() -> Outcome {
    if has_jdk() && has_guava() {
        return Ok(());
    }
    Err("openjdk-17-jdk-headless and libguava-java could not be installed".to_owned())
}

/// Tests whether the Java compiler is installed.
pub fn has_jdk() -> bool {
    works(&mut Command::new("javac"))
}

/// Tests whether Guava is installed.
pub fn has_guava() -> bool {
    Path::new(GUAVA).exists()
}

/// Compiles each block of Java of the page as a file, together with the test program. Warnings are errors.
fn compile(steps: &Steps, folder: &Path) -> Outcome {
    tools::empty_folder(folder)?;
    let page = tools::read_text(&root().join(PAGE))?;
    let mut files = tools::entries_with(&root().join(TESTS), "java")?;
    for block in blocks(&page) {
        let name = class_name(block).ok_or_else(|| format!("{PAGE}: no class in\n{block}"))?;
        let file = folder.join("page").join(format!("{name}.java"));
        tools::write_file(&file, block)?;
        files.push(file);
    }
    let mut javac = Command::new("javac");
    javac.args(["-encoding", "UTF-8", "--release", "17", "-cp", GUAVA, "-sourcepath"]);
    javac.arg(root().join(TESTS).join("stubs")).arg("-d").arg(classes(folder));
    // `classfile` would warn about an annotation of Guava whose class is in another package, and `try` about each server
    // that waits for the end of its process.
    javac.args(["-Xlint:all,-classfile,-try", "-Werror"]).args(files);
    steps.finish_quietly(&mut javac).map(drop)
}

/// Returns the command that runs a part of the test program.
fn test_program(folder: &Path, part: &str) -> Command {
    let mut java = Command::new("java");
    let classes = format!("{}:{GUAVA}", classes(folder).display());
    java.args(["-Dfile.encoding=UTF-8", "-cp", &classes, "JavaTest", part]).current_dir(root());
    java
}

fn classes(folder: &Path) -> PathBuf {
    folder.join("classes")
}

/// Returns the blocks of Java of a page.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    page.split("\n```java\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0))
}

/// Returns the name of the first class of a file, which is the name of the file.
fn class_name(source: &str) -> Option<&str> {
    let line = source.lines().find(|line| line.starts_with("public class "))?;
    line["public class ".len()..].split([' ', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_a_file_with_the_name_of_its_class() {
        let page = "a\n\n```java\npublic class One<T> {\n}\n```\n\n```toml\nb = 1\n```\n\n```java\nimport a;\n\npublic class Two implements B {\n}\n```\n";
        let names: Vec<_> = blocks(page).map(class_name).collect();
        assert_eq!(names, [Some("One"), Some("Two")]);
        assert_eq!(class_name("interface One {\n}\n"), None);
    }
}
