/* test_malformed.c - what a user reads after a mistake in a cluster file's form
 *
 * Each row makes a mistake in a good file (sections, keys, quotes, characters)
 * and says, word for word, everything that is then reported.  After the rows
 * come whole files: empty, too long, all rubbish, and paths that are no files.
 * test_malformed_values.c has the values.
 *
 * Without this test, a line that nobody reads could be accepted in silence, or
 * be reported on the wrong line.
 */
#include "base/compiler.h"
#include "cluster/file.h"
#include "dtensor.h"
#include "tests/cluster/cluster_files.h"
#include "tests/cluster/malformed.h"
#include "tests/support/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_HASH "expected \";\" to start a comment after a value"
#define A_NAME "expected a letter, then at most 31 letters, digits, \"-\" " \
               "or \"_\""
#define FIFTY "12345678901234567890123456789012345678901234567890"

static const struct malformed rows[] = {
    { "a key before the first section", "+1 name = t",
      "F:1: error: \"name\" stands before the first section; expected "
      "[cluster] first" },
    { "a section not closed", "=9 [transport",
      "F:9: error: the section header has no \"]\"; expected [kind] or "
      "[kind \"name\"]" },
    { "text after the section", "=9 [transport] rc",
      "F:9: error: \"rc\" follows the section header; expected only a comment "
      "after \"]\"" },
    { "an unknown section", "=9 [transprot]",
      "F:9: error: unknown section \"transprot\"; did you mean "
      "\"transport\"?" },
    { "an unknown section like no other", "=9 [x]",
      "F:9: error: unknown section \"x\"; expected one of cluster, nodes, "
      "transport, mesh, seed, tuning, redistribute, device, plan" },
    { "a name missing", "=15 [mesh]",
      "F:15: error: section \"mesh\" has no name; expected [mesh \"name\"]" },
    { "a name not quoted", "=15 [mesh world]",
      "F:15: error: the name world is not in double quotes; expected "
      "[mesh \"world\"]" },
    { "a name not wanted", "=9 [transport \"ib\"]",
      "F:9: error: \"ib\" follows \"transport\"; expected [transport]" },
    { "a bad name", "=15 [mesh \"the world\"]",
      "F:15: error: bad name \"the world\"; " A_NAME },
    { "a name too long", "=15 [mesh \"w" FIFTY "\"]",
      "F:15: error: bad name \"w" FIFTY "\"; " A_NAME },
    { "a section twice", "+27 [mesh \"world\"]",
      "F:27: error: section [mesh \"world\"] was already given on line 15" },
    { "no \"=\"", "=6 ranks 4",
      "F:6: error: \"ranks 4\" is neither a section nor \"key = value\"; "
      "expected key = value" },
    { "\":\" for \"=\"", "=6 ranks: 4",
      "F:6: error: \":\" after \"ranks\"; expected \"=\" between a key and its "
      "value" },
    { "no key", "=6 = 4",
      "F:6: error: no key before \"=\"; expected key = value" },
    { "no value", "=6 ranks =", "F:6: error: \"ranks\" has no value" },
    { "only a comment for a value", "=6 ranks = ; four",
      "F:6: error: \"ranks\" has no value" },
    { "an unknown key", "=6 rank = 4",
      "F:6: error: unknown key \"rank\" in [nodes]; did you mean "
      "\"ranks\"?" },
    { "an unknown key like no other", "=18 qqqqqqqq = 4",
      "F:18: error: unknown key \"qqqqqqqq\" in [seed]; expected one of base, "
      "mesh, distinct, stride, tracker, compat, fill, sms, threads_per_sm" },
    { "a key as others call it", "=5 nodes = n[0-1]",
      "F:5: error: unknown key \"nodes\" in [nodes]; nodes is hosts here" },
    { "a section as others call it", "=9 [network]",
      "F:9: error: unknown section \"network\"; network is transport here" },
    { "a key twice", "+7 ranks = 4",
      "F:7: error: \"ranks\" was already given on line 6" },
    { "\"#\" after a value", "=6 ranks = 4 # each",
      "F:6: error: \"#\" inside the value of \"ranks\"; " NO_HASH },
    { "a line too long",
      "=5 hosts = " FIFTY FIFTY FIFTY FIFTY FIFTY FIFTY "12345678901234567",
      "F:5: error: the line has 325 bytes; expected at most 197; use host "
      "ranges such as node[001-128]" },
    { "a control character", "=3 name = \x1b[1m",
      "F:3: error: the line has a byte 0x1b that is not text; expected UTF-8 "
      "without control characters" },
    { "Latin-1", "=3 ; caf\xe9",
      "F:3: error: the line has a byte 0xe9 that is not text; expected UTF-8 "
      "without control characters" },
    { "an indented key is a key of its own, not more of the last value",
      "=6   rnks = 4",
      "F:6: error: unknown key \"rnks\" in [nodes]; did you mean \"ranks\"?" },
    { "three at once, in the order of the lines",
      "=6 rank = 4\n=9 [transprot]\n=18 base",
      "F:6: error: unknown key \"rank\" in [nodes]; did you mean \"ranks\"?\n"
      "F:9: error: unknown section \"transprot\"; did you mean "
      "\"transport\"?\n"
      "F:18: error: \"base\" is neither a section nor \"key = value\"; "
      "expected key = value" },
    { "mistakes of form do not hide wrong values",
      "=6 rank = 4\n=9 [transprot]\n=18 base = x\n=24 max_scratch = 2T",
      "F:6: error: unknown key \"rank\" in [nodes]; did you mean \"ranks\"?\n"
      "F:9: error: unknown section \"transprot\"; did you mean "
      "\"transport\"?\n"
      "F:18: error: base: \"x\" is not a whole number; expected 0 to "
      "18446744073709551615, or 0x and hexadecimal digits\n"
      "F:24: error: max_scratch: 2T is out of range; expected 0 to 1T" },
    { "but what may follow from them", "=6 rank = 4\n=15 [mesh world]",
      "F:6: error: unknown key \"rank\" in [nodes]; did you mean \"ranks\"?\n"
      "F:15: error: the name world is not in double quotes; expected "
      "[mesh \"world\"]" },
};

static void test_whole_files(void)
{
    static char long_file[DTN_FILE_MAX + 2], many[2048];
    struct dtensor_cluster *cluster = NULL;
    static struct report report;
    struct dtensor_error err;
    int rc, lines = 0;

    ok(read_text("", &cluster, &report, &err) == DTENSOR_ECONF &&
       strcmp(report.text, "F: error: no [cluster] section; expected [cluster] "
              "with \"version = 1\"\nF: error: no [nodes \"name\"] section; "
              "expected at least one\n") == 0,
       "an empty file has neither [cluster] nor [nodes]");
    memset(long_file, '\n', sizeof long_file);
    ok(read_bytes(long_file, sizeof long_file, &cluster, &report, &err) ==
       DTENSOR_ECONF && strstr(report.text, "has more than 1048576 bytes"),
       "a file of more than 1 MiB is refused");
    ok(read_bytes("[cluster]\nver\0sion = 1\n", 23, &cluster, &report, &err) ==
       DTENSOR_ECONF && strstr(report.text, "F:2: error: the line has a byte "
                               "0x00"), "a NUL byte is refused");
    for (int i = 0; i < 30; i++)
        strcat(many, "rubbish\n");
    rc = read_text(many, &cluster, &report, &err);
    for (const char *p = report.text; *p; p++)
        lines += *p == '\n';
    ok(rc == DTENSOR_ECONF && lines == 21 &&
       strstr(report.text, "F: error: 10 more; correct these first\n"),
       "of 30 mistakes 20 are reported, and the number of the rest");
    ok(!cluster && strstr(err.text, ":1: error: \"rubbish\" is neither"),
       "the first of them is the error: %s", err.text);
}

static void test_no_files(void)
{
    char dir[] = "/tmp/dtn_malformed_XXXXXX", fifo[64], open_file[64];
    struct dtensor_cluster *cluster = NULL;
    static struct report report;
    struct dtensor_error err;
    FILE *stream;

    if (!mkdtemp(dir))
        abort();
    snprintf(fifo, sizeof fifo, "%s/fifo", dir);
    snprintf(open_file, sizeof open_file, "%s/open", dir);
    ok(read_path(fifo, &cluster, &report, &err) == DTENSOR_ESYS &&
       err.sys_errno == ENOENT && strcmp(report.text, "F: error: cannot open: "
                                         "No such file or directory\n") == 0,
       "no such file: %s", err.text);
    ok(dtensor_cluster_read("", NULL, NULL, &cluster, &err) == DTENSOR_ESYS &&
       strcmp(err.text, "\"\": error: cannot open: No such file or directory")
       == 0, "an empty path is seen in the words: %s", err.text);
    ok(read_path(dir, &cluster, &report, &err) == DTENSOR_ECONF &&
       strcmp(report.text, "F: error: is a directory; expected a regular "
              "file\n") == 0, "a directory is not an empty file");
    if (mkfifo(fifo, 0600) != 0)
        abort();
    ok(read_path(fifo, &cluster, &report, &err) == DTENSOR_ECONF &&
       strcmp(report.text, "F: error: is a FIFO; expected a regular file\n") ==
       0, "a FIFO nobody writes to does not keep us waiting");
    stream = fopen(open_file, "w");
    fputs("[cluster]\nversion = 1\n[nodes \"a\"]\nhosts = n\nranks = 1\n",
          stream);
    fclose(stream);
    chmod(open_file, 0666);
    ok(read_path(open_file, &cluster, &report, &err) == 0 &&
       strcmp(report.text, "F: warning: everybody may write to it; expected "
              "chmod o-w\n") == 0, "a file anyone may write to is worth a "
       "warning");
    dtensor_cluster_destroy(cluster);
    unlink(open_file);
    unlink(fifo);
    rmdir(dir);
}

int main(void)
{
    unsetenv("SLURM_STEP_NODELIST");
    malformed_good();
    malformed_rows(rows, DTN_COUNT(rows));
    test_whole_files();
    test_no_files();
    return done();
}
