# Writes manual pages (roff) of a public header's functions from its comments and declarations.
#
#   awk -v folder=man3 -v version=0.1.0 -f manual_header.awk graphwire.h types.h block.h
#
#   /* … */, GW_API declarations directly after it     one page, named after the first; the others refer to it
#   structs, enums and function types since the        shown on the page verbatim, with their comments
#   previous page
#   the first comment of the first header              graphwire(3), with the names of all functions, and the types that
#                                                      no function of their header follows
#
# A function without a comment gets a page and a warning.

function plain(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	if (text ~ /^[.']/) text = "\\&" text
	return text
}

# The text of a comment, without its delimiters.
function bare(text) {
	gsub(/(^|\n)[ \t]*\*\/[ \t]*/, "\n", text)
	gsub(/\/\* ?/, "", text)
	gsub(/ ?\*\//, "", text)
	gsub(/\n \* ?/, "\n", text)
	sub(/\n+$/, "", text)
	return text
}

function paragraph(text, lines, n, i, out) {
	n = split(text, lines, "\n")
	for (i = 1; i <= n; i++) out = out (lines[i] == "" ? ".PP" : plain(lines[i])) "\n"
	return out
}

function head(name) {
	return ".TH " plain(toupper(name)) " 3 \"\" \"Graphwire " version "\" \"Graphwire\"\n.SH NAME\n"
}

# The one-line description: the comment's first sentence.
function gist(text) {
	gsub(/\n/, " ", text)
	if (match(text, /[.;:] |\.$/)) text = substr(text, 1, RSTART - 1)
	return tolower(substr(text, 1, 1)) substr(text, 2)
}

function flush_page(page, i, names) {
	if (!count) return
	if (comment == "") printf "manual_header.awk: %s has no comment\n", functions[1] > "/dev/stderr"
	page = folder "/" functions[1] ".3"
	for (i = 1; i <= count; i++) names = names (i > 1 ? ", " : "") functions[i]
	printf "%s%s \\- %s\n", head(functions[1]), plain(names), plain(gist(bare(comment))) > page
	printf ".SH SYNOPSIS\n.nf\n#include <graphwire/graphwire.h>\n\n%s.fi\n", plain(prototypes) > page
	printf ".SH DESCRIPTION\n%s", paragraph(bare(comment)) > page
	if (types != "") printf ".SH TYPES\n.nf\n%s.fi\n", plain(types) > page
	printf ".SH SEE ALSO\n.BR graphwire (3),\n.BR graphwire (1)\n" > page
	close(page)
	for (i = 1; i <= count; i++) {
		all[++total] = functions[i]
		if (i == 1) continue
		page = folder "/" functions[i] ".3"
		print ".so man3/" functions[1] ".3" > page
		close(page)
	}
	count = 0
	prototypes = types = ""
}

function declare(line) {
	sub(/^GW_API /, "", line)
	prototypes = prototypes line "\n"
	if (match(line, /gw_[a-z0-9_]+\(/)) functions[++count] = substr(line, RSTART, RLENGTH - 1)
	declaring = line !~ /;/
}

FNR == 1 { flush_page(); comment = ""; unshown = unshown types; types = "" }
declaring { prototypes = prototypes $0 "\n"; declaring = $0 !~ /;/; next }
defining { types = types $0 "\n"; if ($0 ~ /^}/) { types = types "\n"; defining = 0 } next }
commenting {
	comment = comment "\n" $0
	commenting = $0 !~ /\*\//
	if (!commenting && overview == "") overview = bare(comment)
	next
}

/^\/\* ---/ || /^#/ || /^}/ { flush_page(); comment = ""; next }
/^\/\*/ {
	flush_page()
	comment = $0
	commenting = $0 !~ /\*\//
	next
}
/^$/ { flush_page(); comment = ""; next }
/^(struct|enum|typedef enum|typedef struct).*\{$/ {
	if (comment != "") types = types comment "\n"
	types = types $0 "\n"
	defining = 1
	next
}
/^(enum .*\};|typedef .*\);)$/ {
	types = types (comment != "" ? comment "\n" : "") $0 "\n\n"
	comment = ""
	next
}
/^GW_API / { declare($0); next }
{ comment = "" }

END {
	flush_page()
	page = folder "/graphwire.3"
	printf "%sgraphwire \\- %s\n", head("graphwire"), plain(gist(overview)) > page
	printf ".SH SYNOPSIS\n.nf\n#include <graphwire/graphwire.h>\n\ncc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs graphwire)\n.fi\n" > page
	printf ".SH DESCRIPTION\n.nf\n" > page
	n = split(overview, lines, "\n")
	for (i = 1; i <= n; i++) print plain(lines[i]) > page
	printf ".fi\n.SH FUNCTIONS\n" > page
	for (i = 1; i <= total; i++) printf ".BR %s (3)%s\n", plain(all[i]), i < total ? "," : "" > page
	if (unshown types != "") printf ".SH TYPES\n.nf\n%s.fi\n", plain(unshown types) > page
	printf ".SH SEE ALSO\n.BR graphwire (1),\n.BR graphwire (7)\n" > page
}
