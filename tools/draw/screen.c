/* screen.c - the character set and width of the terminal
 *
 * The first of LC_ALL, LC_CTYPE and LANG that is set gives the character set.
 * COLUMNS, or else the terminal itself, gives the width.
 */
#include "tools/draw/screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { SCREEN_LEAST = 24, SCREEN_USUAL = 80, SCREEN_MOST = 1000 };

static bool screen_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8")
                || strstr(value, "UTF8") || strstr(value, "utf-8");
    }
    return false;
}

static bool screen_colour(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return (!no || !*no) && term && *term && strcmp(term, "dumb") != 0;
}

static int screen_columns(int fd)
{
    const char *said = getenv("COLUMNS");
    int columns = said ? atoi(said) : 0;
    struct winsize size;

    if (columns <= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    if (columns <= 0)
        return SCREEN_USUAL;
    return columns < SCREEN_LEAST ? SCREEN_LEAST
         : columns > SCREEN_MOST ? SCREEN_MOST : columns;
}

struct draw_screen draw_screen_of(FILE *stream)
{
    const int fd = fileno(stream);
    const bool terminal = fd >= 0 && isatty(fd);

    return (struct draw_screen){ .utf8 = screen_utf8(), .terminal = terminal,
                                 .colour = terminal && screen_colour(),
                                 .columns = screen_columns(fd) };
}
