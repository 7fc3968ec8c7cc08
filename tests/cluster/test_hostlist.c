/* test_hostlist.c - host lists and counts
 *
 * Tables, a round trip, and Slurm's own parser as the oracle for the lists
 * that both understand.
 *
 * Without this test, "n[01-10,12]" could be read as other hosts than Slurm
 * means, and ranks would look for peers that do not exist.
 */
#include "base/compiler.h"
#include "cluster/cluster.h"
#include "cluster/hostlist.h"
#include "dtensor.h"
#include "tests/support/tap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ----------------------------------------------------------- host lists --- */

static const struct good {
    const char *text;
    const char *names;            /* separated by blanks                      */
} good[] = {
    { "localhost", "localhost" },
    { "a,b,c", "a b c" },
    { "n[1-3]", "n1 n2 n3" },
    { "n[7]", "n7" },
    { "n[0-0]", "n0" },
    { "node[001-004,007]", "node001 node002 node003 node004 node007" },
    { "n[09-11]", "n09 n10 n11" },
    { "n[9-11]", "n9 n10 n11" },
    { "n[98-99,100]", "n98 n99 n100" },
    { "n[08-09,10-11]", "n08 n09 n10 n11" },
    { "n[099-101]", "n099 n100 n101" },
    { "n[99-101]", "n99 n100 n101" },
    { "n[00]", "n00" },
    { "n[3,1,2]", "n3 n1 n2" },
    { "b,a", "b a" },
    { "r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2" },
    { "a[1-2]b[1-2]c[1-2]",
      "a1b1c1 a1b1c2 a1b2c1 a1b2c2 a2b1c1 a2b1c2 a2b2c1 a2b2c2" },
    { "node[01-02]-ib0", "node01-ib0 node02-ib0" },
    { "10.12.0.[9-11]", "10.12.0.9 10.12.0.10 10.12.0.11" },
    { "gpu[1-2].cluster.example,x_y", "gpu1.cluster.example "
      "gpu2.cluster.example x_y" },
    { "n[999999998-999999999]", "n999999998 n999999999" },
    { "[1-2]", "1 2" },
    { "n1,n01,n001", "n1 n01 n001" },
};

static const struct bad {
    const char *text;
    const char *why;
} bad[] = {
    { "n[1-2", "\"[\" and \"]\" do not match in \"n[1-2\"; expected a list "
      "such as node[001-064]" },
    { "n1-2]", "\"[\" and \"]\" do not match in \"n1-2]\"; expected a list "
      "such as node[001-064]" },
    { "a,n[1-[2-3]]", "\"[\" and \"]\" do not match in \"n[1-[2-3]]\"; "
      "expected a list such as node[001-064]" },
    { "]n[", "\"[\" and \"]\" do not match in \"]n[\"; expected a list such as "
      "node[001-064]" },
    { "n[2-1]", "range \"2-1\" in \"n[2-1]\" runs backwards; expected 1-2" },
    { "n[010-009]", "range \"010-009\" in \"n[010-009]\" runs backwards; "
      "expected 009-010" },
    { "n 1", "bad character \" \" in \"n 1\"; expected letters, digits, \".\", "
      "\"-\" and ranges in [ ]" },
    { "n1, n2", "bad character \" \" in \" n2\"; expected letters, digits, "
      "\".\", \"-\" and ranges in [ ]" },
    { "mlx5_0:1", "bad character \":\" in \"mlx5_0:1\"; expected letters, "
      "digits, \".\", \"-\" and ranges in [ ]" },
    { "n\303\2601", "bad character \"\\xc3\" in \"n\303\2601\"; expected "
      "letters, digits, \".\", \"-\" and ranges in [ ]" },
    { "n1,n1", "\"n1\" is listed twice" },
    { "n[1-3],n2", "\"n2\" is listed twice" },
    { "n[1,1]", "\"n1\" is listed twice" },
    { "a[1,11]b[1,11],a1b11", "\"a1b11\" is listed twice" },
    { "", "empty entry between commas; expected a list such as node[001-064]" },
    { "n1,", "empty entry between commas; expected a list such as "
      "node[001-064]" },
    { ",n1", "empty entry between commas; expected a list such as "
      "node[001-064]" },
    { "n1,,n2", "empty entry between commas; expected a list such as "
      "node[001-064]" },
    { "n[]", "bad range \"\" in \"n[]\"; expected a number or two, such as "
      "001-064" },
    { "n[1,]", "bad range \"\" in \"n[1,]\"; expected a number or two, such as "
      "001-064" },
    { "n[1-]", "bad range \"1-\" in \"n[1-]\"; expected a number or two, such "
      "as 001-064" },
    { "n[-1]", "bad range \"-1\" in \"n[-1]\"; expected a number or two, such "
      "as 001-064" },
    { "n[a-c]", "bad range \"a-c\" in \"n[a-c]\"; expected a number or two, "
      "such as 001-064" },
    { "n[1-4:2]", "bad range \"1-4:2\" in \"n[1-4:2]\"; expected a number or "
      "two, such as 001-064" },
    { "n[1-2-3]", "bad range \"1-2-3\" in \"n[1-2-3]\"; expected a number or "
      "two, such as 001-064" },
    { "n[1, 2]", "bad range \" 2\" in \"n[1, 2]\"; expected a number or two, "
      "such as 001-064" },
    { "n[1-9999999999]", "range \"1-9999999999\" in \"n[1-9999999999]\" has a "
      "number too long; expected at most 9 digits" },
    { "n[01-1]", "\"n[01-1]\" mixes numbers of 1 and of 2 digits; expected "
      "leading zeros in all or none, such as 01-10" },
    { "n[1,02]", "\"n[1,02]\" mixes numbers of 1 and of 2 digits; expected "
      "leading zeros in all or none, such as 01-10" },
    { "n[005,40]", "\"n[005,40]\" mixes numbers of 2 and of 3 digits; expected "
      "leading zeros in all or none, such as 01-10" },
    { "n[0-1048576]", "more than 1048576 names at \"n[0-1048576]\"; expected "
      "at most that many" },
    { "a[1-3000]b[1-3000]", "more than 1048576 names at \"a[1-3000]b[1-3000]\"; "
      "expected at most that many" },
    { "a[1-999999999]b[1-999999999]", "more than 1048576 names at "
      "\"a[1-999999999]b[1-999999999]\"; expected at most that many" },
};

/* Join with blanks; the caller frees. */
static char *join(char *const names[], int n)
{
    size_t size = 1;
    char *text, *p;

    for (int i = 0; i < n; i++)
        size += strlen(names[i]) + 1;
    p = text = calloc(1, size);
    for (int i = 0; i < n; i++)
        p += sprintf(p, "%s%s", i ? " " : "", names[i]);
    return text;
}

static void test_good(void)
{
    for (size_t i = 0; i < DTN_COUNT(good); i++) {
        char **names, why[300] = "", *text;
        int n, rc;

        rc = dtn_hostlist_expand(good[i].text, &names, &n, why, sizeof why);
        if (!ok(rc == 0, "%s is read", good[i].text)) {
            note("%s", why);
            continue;
        }
        text = join(names, n);
        ok(strcmp(text, good[i].names) == 0, "as %s", good[i].names);
        free(text);
        dtn_hostlist_free(names, n);
    }
}

static void test_bad(void)
{
    char *mark = NULL, **names = &mark;
    int n = -7;

    for (size_t i = 0; i < DTN_COUNT(bad); i++) {
        char why[300] = "";
        int rc = dtn_hostlist_expand(bad[i].text, &names, &n, why, sizeof why);

        if (!ok(rc == DTENSOR_ECONF && strcmp(why, bad[i].why) == 0,
                "\"%s\": %s", bad[i].text, bad[i].why))
            note("got %d: %s", rc, why);
    }
    ok(names == &mark && n == -7, "the out-parameters are never touched");
}

static void test_limits(void)
{
    char **names, why[300], text[600];
    int n;

    ok(dtn_hostlist_expand("n[0-1048575]", &names, &n, why, sizeof why) == 0 &&
       n == DTN_MAX_HOSTS && strcmp(names[1048575], "n1048575") == 0,
       "1048576 names are the most, and are read");
    dtn_hostlist_free(names, n);
    memset(text, 'x', sizeof text);
    text[246] = '\0';
    ok(dtn_hostlist_expand(text, &names, &n, why, sizeof why) == 0,
       "a name of 246 characters is read");
    dtn_hostlist_free(names, n);
    for (size_t len = 247; len < sizeof text; len += 100) {
        text[len - 100 > 246 ? len - 100 : 246] = 'x';
        text[len] = '\0';
        ok(dtn_hostlist_expand(text, &names, &n, why, sizeof why) ==
           DTENSOR_ECONF && strstr(why, "is too long"),
           "one of %zu is refused", len);
    }
    memset(text, 'x', sizeof text);
    strcpy(text + 245, "[1-2][1-2][1-2][1-2]");
    ok(dtn_hostlist_expand(text, &names, &n, why, sizeof why) ==
       DTENSOR_ECONF && strstr(why, "is too long"),
       "one that brackets make too long is refused");
    dtn_hostlist_free(NULL, 0);
    ok(true, "freeing no list is a no-op");
}

/* --------------------------------------------------------------- format --- */

static void test_format(void)
{
    static const char *const texts[] = {
        "n[1-3],x", "n[0-127]", "node[001-064]", "n[9-11]", "n[09-11]",
        "n[08-100]", "a,b", "n1,n3", "n3,n2,n1", "r1n[1-2],r2n[1-2]",
        "n[1-2]-ib", "[1-3]", "n9,n010", "n[98-101],n1", "n999999999,n0"
    };
    char buf[300], why[300], **names, **again, *a, *b;
    int n, m;

    for (size_t i = 0; i < DTN_COUNT(texts); i++) {
        dtn_hostlist_expand(texts[i], &names, &n, why, sizeof why);
        dtn_hostlist_format(names, n, buf, sizeof buf);
        a = join(names, n);
        m = 0;
        again = NULL;
        dtn_hostlist_expand(buf, &again, &m, why, sizeof why);
        b = join(again, m);
        ok(strcmp(a, b) == 0 && strlen(buf) <= strlen(texts[i]) + 6,
           "%s, written as %s, reads the same", texts[i], buf);
        free(a);
        free(b);
        dtn_hostlist_free(names, n);
        dtn_hostlist_free(again, m);
    }
    dtn_hostlist_expand("a1,b1,c1,d1", &names, &n, why, sizeof why);
    for (size_t size = 4; size < 14; size++) {
        memset(buf, '#', sizeof buf);
        dtn_hostlist_format(names, n, buf, size);
        ok(strlen(buf) < size && buf[size] == '#' &&
           (strcmp(buf, "a1,b1,c1,d1") == 0) == (size >= 12) &&
           (size >= 12 || strcmp(buf + strlen(buf) - 3, "...") == 0),
           "in %zu bytes four names are %s", size, buf);
    }
    dtn_hostlist_free(names, n);
}

/* --------------------------------------------------------------- counts --- */

static void test_counts(void)
{
    static const struct { const char *text, *counts; } table[] = {
        { "4", "4" }, { "2(x2)", "2 2" }, { "3,1", "3 1" },
        { "2(x3),1", "2 2 2 1" }, { "8(x2),4(x1),1024", "8 8 4 1024" },
    };
    static const struct { const char *text, *why; } wrong[] = {
        { "", "\"\" is not a list of counts; expected such as 2(x3),1" },
        { "2,", "\"2,\" is not a list of counts; expected such as 2(x3),1" },
        { "2(x)", "\"2(x)\" is not a list of counts; expected such as "
          "2(x3),1" },
        { "2(x3", "\"2(x3\" is not a list of counts; expected such as "
          "2(x3),1" },
        { "2x3", "\"2x3\" is not a list of counts; expected such as 2(x3),1" },
        { "-1", "\"-1\" is not a list of counts; expected such as 2(x3),1" },
        { "02", "\"02\" is not a list of counts; expected such as 2(x3),1" },
        { "2 ", "\"2 \" is not a list of counts; expected such as 2(x3),1" },
        { "1,0", "0 in \"1,0\" is out of range; expected 1 to 1024" },
        { "1025", "1025 in \"1025\" is out of range; expected 1 to 1024" },
        { "1(x0)", "\"1(x0)\" is not for 1 to 1048576 hosts" },
        { "1(x1048576),1", "\"1(x1048576),1\" is not for 1 to 1048576 hosts" },
        { "1(x9999999999)", "\"1(x9999999999)\" is not a list of counts; "
          "expected such as 2(x3),1" },
    };
    int *counts = NULL, n = 0;
    char why[300], got[200], *p;

    for (size_t i = 0; i < DTN_COUNT(table); i++) {
        p = got;
        *got = '\0';
        if (dtn_counts_expand(table[i].text, &counts, &n, why,
                              sizeof why) == 0) {
            for (int k = 0; k < n; k++)
                p += sprintf(p, "%s%d", k ? " " : "", counts[k]);
            free(counts);
        }
        ok(strcmp(got, table[i].counts) == 0, "%s is %s", table[i].text,
           table[i].counts);
    }
    for (size_t i = 0; i < DTN_COUNT(wrong); i++) {
        int rc = dtn_counts_expand(wrong[i].text, &counts, &n, why, sizeof why);

        if (!ok(rc == DTENSOR_ECONF && strcmp(why, wrong[i].why) == 0,
                "%s", wrong[i].why))
            note("got %d: %s", rc, why);
    }
    ok(dtn_counts_expand("3(x1048576)", &counts, &n, why, sizeof why) == 0 &&
       n == 1048576 && counts[1048575] == 3, "1048576 counts are read");
    free(counts);
}

/* ---------------------------------------------------------------- Slurm --- */

static unsigned random_state;

static int random_below(int n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 8) % (unsigned)n);
}

/* A list that both parsers understand: no suffixes, and two brackets at most,
 * since Slurm 22.05 makes the second of three the slowest.
 */
static void random_list(char *p)
{
    int entries = 1 + random_below(3);

    for (int e = 0; e < entries; e++) {
        p += sprintf(p, "%s%c", e ? "," : "", 'a' + e);
        for (int b = random_below(2); b >= 0; b--) {
            const unsigned char low = random_below(120);
            const unsigned char width = 1 + random_below(4);

            p += sprintf(p, "[%0*d-%0*d,%0*d]", width, low, width,
                         low + random_below(4), width, low + 10);
            if (b > 0)
                p += sprintf(p, "n");
        }
    }
}

/* What `scontrol show hostnames` makes of it, one name a line; false: it cannot
 * be run.
 */
static bool scontrol_expand(const char *list, char *buf, size_t size)
{
    char command[600];
    size_t n;
    FILE *pipe;

    snprintf(command, sizeof command, "scontrol show hostnames '%s' 2>&1 | "
             "tr '\\n' ' '", list);
    pipe = popen(command, "r");
    if (!pipe)
        return false;
    n = fread(buf, 1, size - 1, pipe);
    buf[n] = '\0';
    return pclose(pipe) == 0 && n > 0;
}

/* scontrol wants a file to read, with a cluster in it, but asks nobody. */
static bool scontrol_ready(char *conf)
{
    int fd = mkstemp(conf);
    char buf[100];

    if (fd < 0 ||
        dprintf(fd, "ClusterName=test\nSlurmctldHost=localhost\n") < 0 ||
        close(fd) != 0)
        return false;
    setenv("SLURM_CONF", conf, 1);
    return system("command -v scontrol >/dev/null") == 0 &&
           scontrol_expand("n[1-2]", buf, sizeof buf) &&
           strcmp(buf, "n1 n2 ") == 0;
}

static void test_scontrol(void)
{
    char conf[] = "/tmp/test_hostlist.XXXXXX";
    char list[256], theirs[16384], why[300], **names, *ours;
    int n, bad_lists = 0;

    if (!scontrol_ready(conf)) {
        skip("the same names as scontrol", "no working scontrol here");
        unlink(conf);
        return;
    }
    random_state = (unsigned)getpid();
    note("seed %u", random_state);
    for (int i = 0; i < 60; i++) {
        random_list(list);
        if (dtn_hostlist_expand(list, &names, &n, why, sizeof why) != 0) {
            bad_lists += strstr(why, "listed twice") == NULL;
            continue;
        }
        ours = join(names, n);
        if (!scontrol_expand(list, theirs, sizeof theirs) ||
            strncmp(ours, theirs, strlen(ours)) != 0 ||
            strcmp(theirs + strlen(ours), " ") != 0) {
            note("%s: ours %s, theirs %s", list, ours, theirs);
            bad_lists++;
        }
        free(ours);
        dtn_hostlist_free(names, n);
    }
    ok(bad_lists == 0, "60 random lists: the same names as scontrol");
    unlink(conf);
}

int main(void)
{
    test_good();
    test_bad();
    test_limits();
    test_format();
    test_counts();
    test_scontrol();
    return done();
}
