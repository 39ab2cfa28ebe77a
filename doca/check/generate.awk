# SPDX-License-Identifier: BSD-3-Clause
# generate.awk - reads the public headers of DOCA and writes one part of the validation layer:
#
#     -v part=ids       numbers of functions, of types of objects and of the fields of tasks that are buffers
#     -v part=tables    what the layer knows of each function and type
#     -v part=wrappers  a definition of each function that reports the call and forwards it
#
# -v workq=1: write only the wrappers of the headers in a directory named workq; 0: only those of the others.
#
# A declaration begins with DOCA_STABLE or DOCA_EXPERIMENTAL and ends with ";". The kind of a function follows from its name, and
# the role of a parameter from its type.

function trim(s)
{
	gsub(/^[ \t]+|[ \t]+$/, "", s)
	return s
}

# number of a type of object, from its name; adds the type
function type_id(name)
{
	if (!(name in types)) {
		types[name] = n_types
		type_names[n_types++] = name
	}
	return types[name]
}

# the kind of a function
function kind_of(name)
{
	if (name ~ /_cap_|_get_supported$|_is_supported$/)
		return "CAPABILITY"
	if (name ~ /_as_(doca_)?task$/)
		return "AS_TASK"
	if (name ~ /_as_ctx$/)
		return "AS_CTX"
	if (name ~ /_(create|open|create_from_export|create_list|get_by_args|buf_dup|buf_alloc)$|_create_from_|_matrix_create/)
		return "CREATE"
	if (name ~ /_(destroy|close|destroy_list)$/)
		return "DESTROY"
	if (name ~ /_(alloc|allocate)_init$/)
		return "TASK_ALLOC"
	if (name ~ /_task_.*_set_conf$/)
		return "TASK_CONF"
	if (name ~ /_start$/)
		return "START"
	if (name ~ /_stop$/)
		return "STOP"
	if (name ~ /_get_|_is_equal_/)
		return "GET"
	if (name ~ /_set_user_data$|_set_state_changed_cb$/)
		return "OTHER"
	if (name ~ /_set_|_register$|_add_dev$|_rm_dev$|_enable_|_add_(publisher|subscriber)_/)
		return "CONFIGURE"
	return "OTHER"
}

# reads parameter `text` of the function into p_*[n_params]
function parameter(text,    stars, base, brackets, name, is_const)
{
	text = trim(text)
	if (text == "" || text == "void")
		return
	brackets = gsub(/\[[^]]*\]/, "", text)
	match(text, /[A-Za-z_0-9]+$/)
	name = substr(text, RSTART)
	base = trim(substr(text, 1, RSTART - 1))
	stars = gsub(/\*/, "", base) + brackets
	is_const = base ~ /(^| )const( |$)/
	gsub(/(^| )const( |$)/, " ", base)
	gsub(/ +/, " ", base)
	base = trim(base)
	p_name[n_params] = name
	p_slot[n_params] = "DC_NO_SLOT"
	p_size[n_params] = 0
	p_object[n_params] = "DC_T_NONE"
	if (base ~ /_(cb|callback|func)(_t)?$/ && stars == 0)
		p_role[n_params] = "CALLBACK"
	else if (base ~ /^union doca_data$/ && stars == 0)
		p_role[n_params] = "DATA"
	else if (stars == 0)
		p_role[n_params] = "VALUE"
	else if (base ~ /^struct doca_/) {
		sub(/^struct /, "", base)
		if (is_workq && (base == "doca_ctx" || base == "doca_dma"))
			sub(/^doca_/, "doca_workq_", base)
		if (base ~ /^doca_devinfo(_rep)?$/ && (stars == 3 || (stars == 2 && name_is_list))) {
			base = base "_list"
			stars--
		}
		p_role[n_params] = stars == 2 ? "OUT" : is_const ? "CONST_OBJECT" : "OBJECT"
		p_object[n_params] = "DC_T_" base
		type_id(base)
	} else {
		p_role[n_params] = "POINTER"
		p_size[n_params] = base ~ /^(uint64_t|size_t)$/ ? 8 : base == "uint32_t" ? 4 : base == "uint16_t" ? 2 : 0
	}
	n_params++
}

# gives each buffer that a task refers to a slot, numbered by the name of its parameter
function slots(    i, task, key)
{
	task = ""
	for (i = 0; i < n_params; i++)
		if (p_object[i] ~ /_task_/)
			task = p_object[i]
	if (task == "" || kind !~ /^TASK_/)
		return
	for (i = 0; i < n_params; i++) {
		if (p_object[i] != "DC_T_doca_buf")
			continue
		key = task SUBSEP p_name[i]
		if (!(key in slot_of))
			slot_of[key] = n_slots[task]++ + 0
		p_slot[i] = slot_of[key]
	}
}

function word(i)
{
	return p_role[i] == "DATA" ? p_name[i] ".u64" : "(uint64_t)(uintptr_t)" p_name[i]
}

function argument(i)
{
	return p_role[i] == "CALLBACK" ? "(" p_base[i] ")(uintptr_t)call.args[" i "]" : p_name[i]
}

function wrapper(    i, words, args, cast)
{
	words = args = ""
	for (i = 0; i < n_params; i++) {
		words = words (i ? ", " : "") word(i)
		args = args (i ? ", " : "") argument(i)
	}
	printf "%s%s(%s)\n{\n", result (result ~ /\*$/ ? "" : " "), name, declared
	printf "\tstruct dc_call call = { .function = DC_%s, .site = __builtin_return_address(0), .args = { %s } };\n\n", \
		name, words
	cast = "((__typeof__(&" name "))dc_next(call.function))(" args ")"
	printf "\tif (dc_begin(&call))\n\t\t"
	if (result == "void")
		printf "%s;\n\tdc_end(&call);\n", cast
	else if (result == "union doca_data")
		printf "call.result = %s.u64;\n\tdc_end(&call);\n\treturn (union doca_data){ .u64 = call.result };\n", cast
	else
		printf "call.result = (uint64_t)(uintptr_t)%s;\n\tdc_end(&call);\n\treturn (%s)%scall.result;\n", cast, result, \
			result ~ /\*$/ ? "(uintptr_t)" : ""
	printf "}\n\n"
}

function declaration(line,    open, head, i, n, list, returns)
{
	gsub(/[ \t]+/, " ", line)
	sub(/^ *DOCA_[A-Z]+ /, "", line)
	open = index(line, "(")
	head = trim(substr(line, 1, open - 1))
	match(head, /[A-Za-z_0-9]+$/)
	name = substr(head, RSTART)
	result = trim(substr(head, 1, RSTART - 1))
	if (name ~ /^doca_(log|argp|error|version|dpa_dev)/ || (name in seen))
		return
	seen[name] = 1
	declared = trim(substr(line, open + 1))
	sub(/\) *;$/, "", declared)
	name_is_list = name ~ /_list$/
	kind = kind_of(name)
	n_params = 0
	n = split(declared, list, ",")
	for (i = 1; i <= n; i++) {
		p_base[n_params] = ""
		if (list[i] ~ /_(cb|callback)(_t)? /) {
			p_base[n_params] = trim(list[i])
			sub(/ [A-Za-z_0-9]+$/, "", p_base[n_params])
		}
		parameter(list[i])
	}
	if (n_params > 12) {
		print "generate.awk: " name ": more than 12 parameters" >"/dev/stderr"
		exit 1
	}
	if (p_object[0] ~ /_task_/ && kind != "AS_TASK")
		kind = p_role[0] == "OBJECT" && result ~ /^(void|doca_error_t)$/ ? "TASK_SET" : "GET"
	slots()
	if (kind == "AS_CTX" || kind == "AS_TASK")
		cast_of[substr(p_object[0], 6)] = name
	returns = result == "doca_error_t" ? "ERROR" : result == "void" ? "NOTHING" : result ~ /\*$/ ? "POINTER" : "VALUE"
	names[n_functions++] = name
	row[name] = sprintf("\t[DC_%s] = { \"%s\", DC_%s, DC_RETURNS_%s, %d, {", name, name, kind, returns, n_params)
	for (i = 0; i < n_params; i++)
		row[name] = row[name] sprintf(" { DC_%s, %s, %s, %d },", p_role[i], p_object[i], p_slot[i], p_size[i])
	row[name] = row[name] " } },"
	if (part == "wrappers" && is_workq == workq)
		wrapper()
}

BEGIN {
	n_types = 1
	type_names[0] = "NONE"
	print "/* SPDX-License-Identifier: BSD-3-Clause */"
	print "/* Written by generate.awk from the public headers. */"
}

FNR == 1 {
	is_workq = FILENAME ~ /\/workq\//
}

/^DOCA_(STABLE|EXPERIMENTAL)/ {
	collecting = 1
	text = ""
}

collecting {
	text = text " " $0
	if ($0 ~ /; *$/) {
		declaration(text)
		collecting = 0
	}
}

END {
	if (part == "ids") {
		print "enum dc_function_id {"
		for (i = 0; i < n_functions; i++)
			print "\tDC_" names[i] ","
		print "\tDC_N_FUNCTIONS\n};\n\nenum dc_type_id {"
		for (i = 0; i < n_types; i++)
			print "\tDC_T_" type_names[i] ","
		print "\tDC_N_TYPES\n};"
	}
	if (part == "tables") {
		print "const struct dc_function dc_functions[DC_N_FUNCTIONS] = {"
		for (i = 0; i < n_functions; i++)
			print row[names[i]]
		print "};\n\nconst struct dc_type dc_types[DC_N_TYPES] = {"
		for (i = 0; i < n_types; i++)
			printf "\t[DC_T_%s] = { \"%s\", %s, %d },\n", type_names[i], type_names[i], \
				type_names[i] in cast_of ? "DC_" cast_of[type_names[i]] : "DC_N_FUNCTIONS", type_names[i] ~ /_task_/
		print "};"
	}
}
