BEGIN TRANSACTION;
CREATE TABLE agents (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	idx INTEGER NOT NULL, 
	definition TEXT NOT NULL, 
	settings TEXT, 
	is_default BOOLEAN NOT NULL, 
	CONSTRAINT agents_pkey PRIMARY KEY (tenant_id, thread_id, name), 
	CONSTRAINT agents_tenant_id_thread_id_fkey FOREIGN KEY(tenant_id, thread_id) REFERENCES threads (tenant_id, thread_id), 
	CONSTRAINT agents_idx_check CHECK (idx >= 0)
);
INSERT INTO "agents" VALUES('default','odd','sky',0,'{"models":["m-1"]}','{"temperature":0.5}',1);
INSERT INTO "agents" VALUES('acme','odd','sky',0,'{"models":["m-1"]}','{"temperature":0.5}',1);
CREATE TABLE branches (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	lineage TEXT NOT NULL, 
	last_seq INTEGER NOT NULL, 
	stamp BIGINT NOT NULL, 
	last_role TEXT, 
	open_calls TEXT, 
	partial_seq INTEGER, 
	created_at BIGINT NOT NULL, absent INTEGER, 
	CONSTRAINT branches_pkey PRIMARY KEY (tenant_id, thread_id, branch), 
	CONSTRAINT branches_tenant_id_thread_id_fkey FOREIGN KEY(tenant_id, thread_id) REFERENCES threads (tenant_id, thread_id), 
	CONSTRAINT branches_last_seq_check CHECK (last_seq >= 0)
);
INSERT INTO "branches" VALUES('sealed','sealed',0,'[[0,1,null]]',0,1121824649217164258,NULL,NULL,NULL,1795402916241088,NULL);
INSERT INTO "branches" VALUES('default','weather',0,'[[0,1,null]]',12,2934606855913398891,'assistant',NULL,NULL,1795402916307043,NULL);
INSERT INTO "branches" VALUES('default','weather',1,'[[0,1,6],[1,7,null]]',7,4471124168151049220,'assistant','{"partial":{"lease":[1795402916411147,10.0,null]}}',7,1795402916394200,NULL);
INSERT INTO "branches" VALUES('default','odd',0,'[[0,1,null]]',2,2765937476731152701,'user',NULL,NULL,1795402916420146,NULL);
INSERT INTO "branches" VALUES('default','empty',0,'[[0,1,null]]',0,6421117300859567379,NULL,NULL,NULL,1795402916457064,NULL);
INSERT INTO "branches" VALUES('default','open',0,'[[0,1,null]]',2,8998080552520366561,'assistant','{"calls":[[0,2,0,"call_0","f"]]}',NULL,1795402916465409,NULL);
INSERT INTO "branches" VALUES('default','changed',0,'[[0,1,null]]',11,1868235686055263483,'assistant',NULL,NULL,1795402916579824,6);
INSERT INTO "branches" VALUES('acme','weather',0,'[[0,1,null]]',12,4057610617637102444,'assistant',NULL,NULL,1795402917097879,NULL);
INSERT INTO "branches" VALUES('acme','weather',1,'[[0,1,6],[1,7,null]]',7,4347041586009744953,'assistant','{"partial":{"lease":[1795402917149262,10.0,null]}}',7,1795402917145871,NULL);
INSERT INTO "branches" VALUES('acme','odd',0,'[[0,1,null]]',2,6076362232726326957,'user',NULL,NULL,1795402917153750,NULL);
INSERT INTO "branches" VALUES('acme','empty',0,'[[0,1,null]]',0,700798851692844645,NULL,NULL,NULL,1795402917181052,NULL);
INSERT INTO "branches" VALUES('acme','open',0,'[[0,1,null]]',2,3249089605666897289,'assistant','{"calls":[[0,2,0,"call_0","f"]]}',NULL,1795402917183571,NULL);
INSERT INTO "branches" VALUES('acme','changed',0,'[[0,1,null]]',11,803168537399580010,'assistant',NULL,NULL,1795402917198013,6);
CREATE TABLE chatledger_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT chatledger_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "chatledger_version" VALUES('0005');
CREATE TABLE erasures (
	tenant_id TEXT NOT NULL, 
	erasure_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	rows TEXT NOT NULL, 
	scores INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT erasures_pkey PRIMARY KEY (tenant_id, erasure_id), 
	CONSTRAINT erasures_kind_check CHECK (kind IN ('thread', 'user', 'tenant'))
);
INSERT INTO "erasures" VALUES('default','01a2065a-64e4-7aa8-bcf9-f293ee3afb56','thread','22e9e744-18ab-8939-8fb9-c99caa8cd31b','{"kv":0,"revisions":0,"outputs":0,"agents":0,"feedback":1,"tool_results":0,"tool_calls":0,"message_parts":0,"messages":0,"runs":1,"branches":1,"threads":1}',1,1795402917092549);
INSERT INTO "erasures" VALUES('acme','01a2065a-66e9-7bc4-8e2f-8eadd7d6929a','thread','22e9e744-18ab-8939-8fb9-c99caa8cd31b','{"kv":0,"revisions":0,"outputs":0,"agents":0,"feedback":1,"tool_results":0,"tool_calls":0,"message_parts":0,"messages":0,"runs":1,"branches":1,"threads":1}',1,1795402917609542);
CREATE TABLE "feedback" (
	tenant_id TEXT NOT NULL, 
	feedback_id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	score FLOAT NOT NULL, 
	kwargs TEXT NOT NULL, 
	author TEXT, 
	source TEXT, 
	thread_id TEXT, 
	branch INTEGER, 
	seq INTEGER, 
	idempotency_key TEXT, 
	created_at BIGINT NOT NULL, 
	message_id TEXT, 
	call_idx INTEGER, 
	user_id TEXT, 
	retracted_at BIGINT, 
	CONSTRAINT feedback_pkey PRIMARY KEY (tenant_id, feedback_id), 
	CONSTRAINT feedback_tenant_id_run_id_idempotency_key_key UNIQUE (tenant_id, run_id, idempotency_key), 
	CONSTRAINT feedback_tenant_id_run_id_fkey FOREIGN KEY(tenant_id, run_id) REFERENCES runs (tenant_id, run_id)
);
INSERT INTO "feedback" VALUES('default','32469f96-d648-80fd-a2c5-2d9ae21cd226','run 7','stars',4.0,'{"why":"fast"}','ada','ui','weather',0,5,'click-1',1795402916362897,'w4',NULL,NULL,NULL);
INSERT INTO "feedback" VALUES('default','01a2065a-6218-7a08-a06a-933e2893c4cb','run 7','thumbs',-1.5,'{}',NULL,NULL,NULL,NULL,NULL,NULL,1795402916376506,NULL,NULL,NULL,NULL);
INSERT INTO "feedback" VALUES('default','01a2065a-6464-7af5-b697-d9c876357374','run 9','stars',4.0,'{"why":"fast"}','ada','ui','changed',0,2,NULL,1795402916965022,'c1',0,'ada',NULL);
INSERT INTO "feedback" VALUES('default','01a2065a-6471-7b56-82dc-940ea7d278c8','run 9','thumbs',1.0,'{}',NULL,NULL,NULL,NULL,NULL,NULL,1795402916977976,NULL,NULL,'ada',1795402916991531);
INSERT INTO "feedback" VALUES('acme','32469f96-d648-80fd-a2c5-2d9ae21cd226','run 7','stars',4.0,'{"why":"fast"}','ada','ui','weather',0,5,'click-1',1795402917124305,'w4',NULL,NULL,NULL);
INSERT INTO "feedback" VALUES('acme','01a2065a-6512-762c-9887-d73c10137d8f','run 7','thumbs',-1.5,'{}',NULL,NULL,NULL,NULL,NULL,NULL,1795402917138095,NULL,NULL,NULL,NULL);
INSERT INTO "feedback" VALUES('acme','01a2065a-667b-7bc9-b0e7-d59c67c1266b','run 9','stars',4.0,'{"why":"fast"}','ada','ui','changed',0,2,NULL,1795402917499330,'c1',0,'ada',NULL);
INSERT INTO "feedback" VALUES('acme','01a2065a-6685-7df2-83a0-c05d0fac322f','run 9','thumbs',1.0,'{}',NULL,NULL,NULL,NULL,NULL,NULL,1795402917509129,NULL,NULL,'ada',1795402917516533);
CREATE TABLE kept_scores (
	tenant_id TEXT NOT NULL, 
	erasure_id TEXT NOT NULL, 
	idx INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	score FLOAT NOT NULL, 
	agent TEXT, 
	model TEXT, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT kept_scores_pkey PRIMARY KEY (tenant_id, erasure_id, idx), 
	CONSTRAINT kept_scores_tenant_id_erasure_id_fkey FOREIGN KEY(tenant_id, erasure_id) REFERENCES erasures (tenant_id, erasure_id), 
	CONSTRAINT kept_scores_idx_check CHECK (idx >= 0)
);
INSERT INTO "kept_scores" VALUES('default','01a2065a-64e4-7aa8-bcf9-f293ee3afb56',0,'stars',2.0,'forecaster','m-1',1795402917055217);
INSERT INTO "kept_scores" VALUES('acme','01a2065a-66e9-7bc4-8e2f-8eadd7d6929a',0,'stars',2.0,'forecaster','m-1',1795402917578410);
CREATE TABLE kv (
	tenant_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	scope_id TEXT NOT NULL, 
	namespace TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	version BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT kv_pkey PRIMARY KEY (tenant_id, kind, scope_id, namespace, "key"), 
	CONSTRAINT kv_kind_check CHECK (kind IN ('tenant', 'user', 'thread')), 
	CONSTRAINT kv_version_check CHECK (version >= 1)
);
INSERT INTO "kv" VALUES('default','thread','changed','','step','1',1795402916592750,1795402916592750);
INSERT INTO "kv" VALUES('default','tenant','','','state','{"z":[1.0,null],"a":"\u0000"}',1795402917023013,1795402917023013);
INSERT INTO "kv" VALUES('default','user','ada','settings','state','{"z":[1.0,null],"a":"\u0000"}',1795402917027963,1795402917027963);
INSERT INTO "kv" VALUES('default','thread','changed','','state','{"z":[1.0,null],"a":"\u0000"}',1795402917035801,1795402917035801);
INSERT INTO "kv" VALUES('acme','thread','changed','','step','1',1795402917210492,1795402917210492);
INSERT INTO "kv" VALUES('acme','tenant','','','state','{"z":[1.0,null],"a":"\u0000"}',1795402917542489,1795402917542489);
INSERT INTO "kv" VALUES('acme','user','ada','settings','state','{"z":[1.0,null],"a":"\u0000"}',1795402917543742,1795402917543742);
INSERT INTO "kv" VALUES('acme','thread','changed','','state','{"z":[1.0,null],"a":"\u0000"}',1795402917556632,1795402917556632);
CREATE TABLE message_parts (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	idx INTEGER NOT NULL, 
	channel TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	text TEXT, 
	body TEXT, 
	CONSTRAINT message_parts_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq, idx), 
	CONSTRAINT message_parts_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES messages (tenant_id, thread_id, branch, seq), 
	CONSTRAINT message_parts_idx_check CHECK (idx >= 0), 
	CONSTRAINT message_parts_channel_check CHECK (channel IN ('content', 'reasoning'))
);
INSERT INTO "message_parts" VALUES('default','weather',0,6,0,'content','text','see',NULL);
INSERT INTO "message_parts" VALUES('default','weather',0,6,1,'content','image',NULL,'{"url":"https://example.org/a.png"}');
INSERT INTO "message_parts" VALUES('default','weather',0,7,0,'reasoning','text','hm',NULL);
INSERT INTO "message_parts" VALUES('default','weather',0,11,0,'content','opaque',NULL,'{"type":"chart","value":{"n":1000000000000000000000000000000}}');
INSERT INTO "message_parts" VALUES('default','weather',0,11,1,'content','text',' marked',NULL);
INSERT INTO "message_parts" VALUES('default','weather',0,11,2,'reasoning','think','so','{"signature":"s"}');
INSERT INTO "message_parts" VALUES('acme','weather',0,6,0,'content','text','see',NULL);
INSERT INTO "message_parts" VALUES('acme','weather',0,6,1,'content','image',NULL,'{"url":"https://example.org/a.png"}');
INSERT INTO "message_parts" VALUES('acme','weather',0,7,0,'reasoning','text','hm',NULL);
INSERT INTO "message_parts" VALUES('acme','weather',0,11,0,'content','opaque',NULL,'{"type":"chart","value":{"n":1000000000000000000000000000000}}');
INSERT INTO "message_parts" VALUES('acme','weather',0,11,1,'content','text',' marked',NULL);
INSERT INTO "message_parts" VALUES('acme','weather',0,11,2,'reasoning','think','so','{"signature":"s"}');
CREATE TABLE messages (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	message_id TEXT, 
	role TEXT NOT NULL, 
	name TEXT, 
	content_form TEXT, 
	text TEXT, 
	reasoning_form TEXT, 
	call_count INTEGER, 
	tool_call_id TEXT, 
	is_error BOOLEAN, 
	run_id TEXT, 
	state TEXT NOT NULL, 
	format TEXT, 
	residual TEXT, 
	response_metadata TEXT, 
	custom_data TEXT, 
	violations TEXT, 
	created_at BIGINT NOT NULL, revision INTEGER, digest TEXT, 
	CONSTRAINT messages_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq), 
	CONSTRAINT messages_tenant_id_thread_id_branch_fkey FOREIGN KEY(tenant_id, thread_id, branch) REFERENCES branches (tenant_id, thread_id, branch), 
	CONSTRAINT messages_tenant_id_thread_id_run_id_fkey FOREIGN KEY(tenant_id, thread_id, run_id) REFERENCES runs (tenant_id, thread_id, run_id), 
	CONSTRAINT messages_seq_check CHECK (seq >= 1), 
	CONSTRAINT messages_content_form_check CHECK (content_form IN ('str', 'text', 'parts')), 
	CONSTRAINT messages_reasoning_form_check CHECK (reasoning_form IN ('str', 'parts')), 
	CONSTRAINT messages_state_check CHECK (state IN ('complete', 'partial', 'interrupted', 'synthetic'))
);
INSERT INTO "messages" VALUES('default','weather',0,1,'w0','user',NULL,'str','What is the weather in Tokyo and in Lima?',NULL,NULL,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795402916343186,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',0,2,'w1','assistant',NULL,NULL,NULL,NULL,2,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795402916343186,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',0,3,'w2','tool',NULL,'str','sunny',NULL,NULL,'call_1',NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795402916343186,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',0,4,'w3','tool',NULL,'str','sunny',NULL,NULL,'call_0',NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795402916343186,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',0,5,'w4','assistant',NULL,'str','It is sunny in both.',NULL,NULL,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795402916343186,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',0,6,'r0','user','ada','parts',NULL,NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795402916352893,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',0,7,'r1','assistant',NULL,'parts',NULL,'str',3,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1709251199123456,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',0,8,'r2','tool',NULL,'str','no',NULL,NULL,'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc',1,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795402916352893,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',0,9,'r3','tool','f','str','sunny',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795402916352893,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',0,10,'r4','tool','g','str','sunny',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795402916352893,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',0,11,'r5','assistant',NULL,'parts',NULL,'parts',NULL,NULL,NULL,NULL,'complete',NULL,NULL,'{"finish":"stop"}','{"k":"v"}',NULL,1795402916352893,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',0,12,'r6','assistant',NULL,'text','lone',NULL,NULL,NULL,NULL,NULL,'interrupted',NULL,NULL,NULL,NULL,NULL,1795402916352893,NULL,NULL);
INSERT INTO "messages" VALUES('default','weather',1,7,'w-other','assistant',NULL,'str','Or: 21 °C.',NULL,NULL,NULL,NULL,NULL,'partial',NULL,NULL,NULL,NULL,NULL,1795402916411147,NULL,NULL);
INSERT INTO "messages" VALUES('default','odd',0,1,'o1','tool',NULL,'str','sunny',NULL,NULL,'nowhere',NULL,NULL,'complete',NULL,NULL,NULL,NULL,'[{"rule":"R6","detail":"a tool result with id ''nowhere'', but no call is open"}]',1795402916427139,NULL,NULL);
INSERT INTO "messages" VALUES('default','odd',0,2,'o2','user',NULL,'str','',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795402916427139,NULL,NULL);
INSERT INTO "messages" VALUES('default','open',0,1,'820220be-753b-8e97-b1b5-2ebc4c130221','user',NULL,'str','f?',NULL,NULL,NULL,NULL,NULL,'complete','openai-chat',NULL,NULL,NULL,NULL,1795402916569266,NULL,NULL);
INSERT INTO "messages" VALUES('default','open',0,2,'7db1da60-72ff-8a3a-b6ff-8fd7c7aa5ddd','assistant',NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'complete','openai-chat','{"calls":{"0":{"keys":["id","type","function","new_key"],"extra":{"new_key":1}}},"keys":["role","content","tool_calls","audio"],"extra":{"audio":null}}',NULL,NULL,'[{"rule":"R9","detail":"the arguments of tool call 0 (f) are not JSON"}]',1795402916569266,NULL,NULL);
INSERT INTO "messages" VALUES('default','changed',0,1,'c0','user',NULL,'str','[redacted]',NULL,NULL,NULL,NULL,'run 9','complete',NULL,NULL,NULL,NULL,'[{"rule":"R11","detail":"redacted 2026-11-23T03:01:56+00:00"}]',1795402916592750,1,'scrypt-14-8-1:48c6dc3985ef2b2be5965f2e5804622de1761c7517eba972c5cd46a14f459da6');
INSERT INTO "messages" VALUES('default','changed',0,2,'c1','assistant',NULL,NULL,NULL,NULL,2,NULL,NULL,'run 9','complete',NULL,NULL,NULL,NULL,NULL,1795402916592750,1,NULL);
INSERT INTO "messages" VALUES('default','changed',0,3,'c2','tool',NULL,'str','sunny',NULL,NULL,'call_1',NULL,'run 9','complete',NULL,NULL,NULL,NULL,NULL,1795402916592750,NULL,NULL);
INSERT INTO "messages" VALUES('default','changed',0,4,'c3','tool',NULL,'str','sunny',NULL,NULL,'call_0',NULL,'run 9','complete',NULL,NULL,NULL,NULL,NULL,1795402916592750,NULL,NULL);
INSERT INTO "messages" VALUES('default','changed',0,5,'c4','assistant',NULL,'str','It is sunny in both.',NULL,NULL,NULL,NULL,'run 9','complete',NULL,NULL,NULL,NULL,NULL,1795402916592750,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,1,'w0','user',NULL,'str','What is the weather in Tokyo and in Lima?',NULL,NULL,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795402917103862,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,2,'w1','assistant',NULL,NULL,NULL,NULL,2,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795402917103862,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,3,'w2','tool',NULL,'str','sunny',NULL,NULL,'call_1',NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795402917103862,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,4,'w3','tool',NULL,'str','sunny',NULL,NULL,'call_0',NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795402917103862,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,5,'w4','assistant',NULL,'str','It is sunny in both.',NULL,NULL,NULL,NULL,'run 7','complete',NULL,NULL,NULL,NULL,NULL,1795402917103862,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,6,'r0','user','ada','parts',NULL,NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795402917110062,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,7,'r1','assistant',NULL,'parts',NULL,'str',3,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1709251199123456,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,8,'r2','tool',NULL,'str','no',NULL,NULL,'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc',1,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795402917110062,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,9,'r3','tool','f','str','sunny',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795402917110062,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,10,'r4','tool','g','str','sunny',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795402917110062,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,11,'r5','assistant',NULL,'parts',NULL,'parts',NULL,NULL,NULL,NULL,'complete',NULL,NULL,'{"finish":"stop"}','{"k":"v"}',NULL,1795402917110062,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',0,12,'r6','assistant',NULL,'text','lone',NULL,NULL,NULL,NULL,NULL,'interrupted',NULL,NULL,NULL,NULL,NULL,1795402917110062,NULL,NULL);
INSERT INTO "messages" VALUES('acme','weather',1,7,'w-other','assistant',NULL,'str','Or: 21 °C.',NULL,NULL,NULL,NULL,NULL,'partial',NULL,NULL,NULL,NULL,NULL,1795402917149262,NULL,NULL);
INSERT INTO "messages" VALUES('acme','odd',0,1,'o1','tool',NULL,'str','sunny',NULL,NULL,'nowhere',NULL,NULL,'complete',NULL,NULL,NULL,NULL,'[{"rule":"R6","detail":"a tool result with id ''nowhere'', but no call is open"}]',1795402917156091,NULL,NULL);
INSERT INTO "messages" VALUES('acme','odd',0,2,'o2','user',NULL,'str','',NULL,NULL,NULL,NULL,NULL,'complete',NULL,NULL,NULL,NULL,NULL,1795402917156091,NULL,NULL);
INSERT INTO "messages" VALUES('acme','open',0,1,'820220be-753b-8e97-b1b5-2ebc4c130221','user',NULL,'str','f?',NULL,NULL,NULL,NULL,NULL,'complete','openai-chat',NULL,NULL,NULL,NULL,1795402917193297,NULL,NULL);
INSERT INTO "messages" VALUES('acme','open',0,2,'7db1da60-72ff-8a3a-b6ff-8fd7c7aa5ddd','assistant',NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'complete','openai-chat','{"calls":{"0":{"keys":["id","type","function","new_key"],"extra":{"new_key":1}}},"keys":["role","content","tool_calls","audio"],"extra":{"audio":null}}',NULL,NULL,'[{"rule":"R9","detail":"the arguments of tool call 0 (f) are not JSON"}]',1795402917193297,NULL,NULL);
INSERT INTO "messages" VALUES('acme','changed',0,1,'c0','user',NULL,'str','[redacted]',NULL,NULL,NULL,NULL,'run 9','complete',NULL,NULL,NULL,NULL,'[{"rule":"R11","detail":"redacted 2026-11-23T03:01:57+00:00"}]',1795402917210492,1,'scrypt-14-8-1:df12c9bd7652e036c04f8770c63a137060f8e6abe7bd8365770a7d38ca478270');
INSERT INTO "messages" VALUES('acme','changed',0,2,'c1','assistant',NULL,NULL,NULL,NULL,2,NULL,NULL,'run 9','complete',NULL,NULL,NULL,NULL,NULL,1795402917210492,1,NULL);
INSERT INTO "messages" VALUES('acme','changed',0,3,'c2','tool',NULL,'str','sunny',NULL,NULL,'call_1',NULL,'run 9','complete',NULL,NULL,NULL,NULL,NULL,1795402917210492,NULL,NULL);
INSERT INTO "messages" VALUES('acme','changed',0,4,'c3','tool',NULL,'str','sunny',NULL,NULL,'call_0',NULL,'run 9','complete',NULL,NULL,NULL,NULL,NULL,1795402917210492,NULL,NULL);
INSERT INTO "messages" VALUES('acme','changed',0,5,'c4','assistant',NULL,'str','It is sunny in both.',NULL,NULL,NULL,NULL,'run 9','complete',NULL,NULL,NULL,NULL,NULL,1795402917210492,NULL,NULL);
CREATE TABLE outputs (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	idx INTEGER NOT NULL, 
	call_idx INTEGER, 
	nonce TEXT NOT NULL, 
	mime_type TEXT NOT NULL, 
	text TEXT NOT NULL, 
	body TEXT, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT outputs_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq, idx), 
	CONSTRAINT outputs_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES messages (tenant_id, thread_id, branch, seq), 
	CONSTRAINT outputs_idx_check CHECK (idx >= 0)
);
INSERT INTO "outputs" VALUES('default','odd',0,2,0,0,'n1','text/plain','\u0000','{"lang":"sh"}',1795402916433900);
INSERT INTO "outputs" VALUES('acme','odd',0,2,0,0,'n1','text/plain','\u0000','{"lang":"sh"}',1795402917166873);
CREATE TABLE revisions (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	idx INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	target_branch INTEGER NOT NULL, 
	target_seq INTEGER NOT NULL, 
	message_id TEXT, 
	body TEXT, 
	digest TEXT, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT revisions_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq, idx), 
	CONSTRAINT revisions_tenant_id_thread_id_branch_fkey FOREIGN KEY(tenant_id, thread_id, branch) REFERENCES branches (tenant_id, thread_id, branch), 
	CONSTRAINT revisions_idx_check CHECK (idx >= 0), 
	CONSTRAINT revisions_kind_check CHECK (kind IN ('revised', 'retracted', 'popped'))
);
INSERT INTO "revisions" VALUES('default','changed',0,6,0,'revised',0,1,'c0',NULL,'scrypt-14-8-1:1700d6accbd16a02b1e3e2a148db7c1ce34ec2ccefd5ef20456d6b88e597654b',1795402916609013);
INSERT INTO "revisions" VALUES('default','changed',0,7,0,'revised',0,2,'c1','{"message":{"message_id":"c1","role":"assistant","call_count":2,"run_id":"run 9","seq":2,"state":"complete","created_at":1795402916592750},"parts":[],"calls":[[0,"call_0","weather","{\"city\": \"Tokyo\"}","str",null],[1,"call_1","weather","{\"city\": \"Lima\"}","str",null]]}',NULL,1795402916629207);
INSERT INTO "revisions" VALUES('default','changed',0,10,0,'popped',0,9,'c6','{"message":{"message_id":"c6","role":"assistant","content_form":"str","text":"Yes.","seq":9,"state":"complete","created_at":1795402916934513},"parts":[],"calls":[]}',NULL,1795402916940674);
INSERT INTO "revisions" VALUES('default','changed',0,11,0,'retracted',0,8,'c5','{"message":{"message_id":"c5","role":"user","content_form":"str","text":"No.","seq":8,"state":"complete","created_at":1795402916934513},"parts":[],"calls":[]}',NULL,1795402916952380);
INSERT INTO "revisions" VALUES('acme','changed',0,6,0,'revised',0,1,'c0',NULL,'scrypt-14-8-1:dbc6897a4f57d5d2f70dcef22627f24c386e768dce5e334360f43b2c8fe36c2c',1795402917216754);
INSERT INTO "revisions" VALUES('acme','changed',0,7,0,'revised',0,2,'c1','{"message":{"message_id":"c1","role":"assistant","call_count":2,"run_id":"run 9","seq":2,"state":"complete","created_at":1795402917210492},"parts":[],"calls":[[0,"call_0","weather","{\"city\": \"Tokyo\"}","str",null],[1,"call_1","weather","{\"city\": \"Lima\"}","str",null]]}',NULL,1795402917229795);
INSERT INTO "revisions" VALUES('acme','changed',0,10,0,'popped',0,9,'c6','{"message":{"message_id":"c6","role":"assistant","content_form":"str","text":"Yes.","seq":9,"state":"complete","created_at":1795402917469640},"parts":[],"calls":[]}',NULL,1795402917476105);
INSERT INTO "revisions" VALUES('acme','changed',0,11,0,'retracted',0,8,'c5','{"message":{"message_id":"c5","role":"user","content_form":"str","text":"No.","seq":8,"state":"complete","created_at":1795402917469640},"parts":[],"calls":[]}',NULL,1795402917486188);
CREATE TABLE runs (
	tenant_id TEXT NOT NULL, 
	run_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	agent TEXT, 
	model TEXT, 
	status TEXT NOT NULL, 
	input TEXT, 
	input_tokens BIGINT, 
	output_tokens BIGINT, 
	total_tokens BIGINT, 
	usage_details TEXT, 
	cost TEXT, 
	error TEXT, 
	metadata TEXT, 
	started_at BIGINT NOT NULL, 
	ended_at BIGINT, 
	CONSTRAINT runs_pkey PRIMARY KEY (tenant_id, run_id), 
	CONSTRAINT runs_tenant_id_thread_id_run_id_key UNIQUE (tenant_id, thread_id, run_id), 
	CONSTRAINT runs_tenant_id_thread_id_fkey FOREIGN KEY(tenant_id, thread_id) REFERENCES threads (tenant_id, thread_id), 
	CONSTRAINT runs_status_check CHECK (status IN ('running', 'completed', 'failed', 'cancelled'))
);
INSERT INTO "runs" VALUES('default','run 7','weather','forecaster','m-1','failed','{"q":1}',12,3,15,'{"cached":2}','1.0E-20','out of \ud800 quota','{}',1795402916329541,1795402916361123);
INSERT INTO "runs" VALUES('default','run 9','changed',NULL,NULL,'running',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795402916592750,NULL);
INSERT INTO "runs" VALUES('acme','run 7','weather','forecaster','m-1','failed','{"q":1}',12,3,15,'{"cached":2}','1.0E-20','out of \ud800 quota','{}',1795402917099286,1795402917120152);
INSERT INTO "runs" VALUES('acme','run 9','changed',NULL,NULL,'running',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795402917210492,NULL);
CREATE TABLE tenants (
	tenant_id TEXT NOT NULL, 
	encrypted_at BIGINT, 
	CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id)
);
INSERT INTO "tenants" VALUES('sealed',1795402916252696);
CREATE TABLE threads (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	user_id TEXT, 
	title TEXT, 
	metadata TEXT, 
	rules TEXT, 
	active_branch INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	active_at BIGINT NOT NULL, kind TEXT, archived_at BIGINT, revision INTEGER, 
	CONSTRAINT threads_pkey PRIMARY KEY (tenant_id, thread_id), 
	CONSTRAINT threads_rules_check CHECK (rules IN ('lenient', 'strict', 'ordered'))
);
INSERT INTO "threads" VALUES('sealed','sealed',NULL,'1:1:zUx6C/b7iXtySJfYk7SymD7yvSijJ+tdI2EA9mNnvzzmTQ==',NULL,NULL,0,1795402916241088,1795402916241088,NULL,NULL,NULL);
INSERT INTO "threads" VALUES('default','weather','user:42/x','Wetter in Tōkyō','{"b":100.0,"a":[null,"\u0000"]}',NULL,1,1795402916307043,1795402916307043,NULL,NULL,NULL);
INSERT INTO "threads" VALUES('default','odd',NULL,NULL,NULL,'lenient',0,1795402916420146,1795402916420146,NULL,NULL,NULL);
INSERT INTO "threads" VALUES('default','empty',NULL,NULL,NULL,NULL,0,1795402916457064,1795402916457064,NULL,NULL,NULL);
INSERT INTO "threads" VALUES('default','open',NULL,NULL,NULL,NULL,0,1795402916465409,1795402916465409,NULL,NULL,NULL);
INSERT INTO "threads" VALUES('default','changed','user:42/x','Changed',NULL,'lenient',0,1795402916579824,1795402916579824,'sky',1795402917007963,1);
INSERT INTO "threads" VALUES('acme','weather','user:42/x','Wetter in Tōkyō','{"b":100.0,"a":[null,"\u0000"]}',NULL,1,1795402917097879,1795402917097879,NULL,NULL,NULL);
INSERT INTO "threads" VALUES('acme','odd',NULL,NULL,NULL,'lenient',0,1795402917153750,1795402917153750,NULL,NULL,NULL);
INSERT INTO "threads" VALUES('acme','empty',NULL,NULL,NULL,NULL,0,1795402917181052,1795402917181052,NULL,NULL,NULL);
INSERT INTO "threads" VALUES('acme','open',NULL,NULL,NULL,NULL,0,1795402917183571,1795402917183571,NULL,NULL,NULL);
INSERT INTO "threads" VALUES('acme','changed','user:42/x','Changed',NULL,'lenient',0,1795402917198013,1795402917198013,'sky',1795402917536148,1);
CREATE TABLE tool_calls (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	idx INTEGER NOT NULL, 
	call_id TEXT, 
	name TEXT NOT NULL, 
	arguments TEXT, 
	arguments_form TEXT, 
	extras TEXT, 
	CONSTRAINT tool_calls_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq, idx), 
	CONSTRAINT tool_calls_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES messages (tenant_id, thread_id, branch, seq), 
	CONSTRAINT tool_calls_idx_check CHECK (idx >= 0), 
	CONSTRAINT tool_calls_arguments_form_check CHECK (arguments_form IN ('str', 'object'))
);
INSERT INTO "tool_calls" VALUES('default','weather',0,2,0,'call_0','weather','{"city": "Tokyo"}','str',NULL);
INSERT INTO "tool_calls" VALUES('default','weather',0,2,1,'call_1','weather','{"city": "Lima"}','str',NULL);
INSERT INTO "tool_calls" VALUES('default','weather',0,7,0,NULL,'f','{"z":-0.0}','object','{"x":1}');
INSERT INTO "tool_calls" VALUES('default','weather',0,7,1,'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc','weather','{"city": "Tokyo"}','str',NULL);
INSERT INTO "tool_calls" VALUES('default','weather',0,7,2,NULL,'g',NULL,NULL,NULL);
INSERT INTO "tool_calls" VALUES('default','open',0,2,0,'call_0','f','{','str',NULL);
INSERT INTO "tool_calls" VALUES('default','changed',0,2,0,'call_0','weather','{"city":"Oslo"}','str',NULL);
INSERT INTO "tool_calls" VALUES('default','changed',0,2,1,'call_1','weather','{"city":"Bergen"}','str',NULL);
INSERT INTO "tool_calls" VALUES('acme','weather',0,2,0,'call_0','weather','{"city": "Tokyo"}','str',NULL);
INSERT INTO "tool_calls" VALUES('acme','weather',0,2,1,'call_1','weather','{"city": "Lima"}','str',NULL);
INSERT INTO "tool_calls" VALUES('acme','weather',0,7,0,NULL,'f','{"z":-0.0}','object','{"x":1}');
INSERT INTO "tool_calls" VALUES('acme','weather',0,7,1,'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc','weather','{"city": "Tokyo"}','str',NULL);
INSERT INTO "tool_calls" VALUES('acme','weather',0,7,2,NULL,'g',NULL,NULL,NULL);
INSERT INTO "tool_calls" VALUES('acme','open',0,2,0,'call_0','f','{','str',NULL);
INSERT INTO "tool_calls" VALUES('acme','changed',0,2,0,'call_0','weather','{"city":"Oslo"}','str',NULL);
INSERT INTO "tool_calls" VALUES('acme','changed',0,2,1,'call_1','weather','{"city":"Bergen"}','str',NULL);
CREATE TABLE tool_results (
	tenant_id TEXT NOT NULL, 
	thread_id TEXT NOT NULL, 
	branch INTEGER NOT NULL, 
	seq INTEGER NOT NULL, 
	call_branch INTEGER NOT NULL, 
	call_seq INTEGER NOT NULL, 
	call_idx INTEGER NOT NULL, 
	CONSTRAINT tool_results_pkey PRIMARY KEY (tenant_id, thread_id, branch, seq), 
	CONSTRAINT tool_results_tenant_id_thread_id_branch_seq_fkey FOREIGN KEY(tenant_id, thread_id, branch, seq) REFERENCES messages (tenant_id, thread_id, branch, seq), 
	CONSTRAINT tool_results_call_fkey FOREIGN KEY(tenant_id, thread_id, call_branch, call_seq, call_idx) REFERENCES tool_calls (tenant_id, thread_id, branch, seq, idx)
);
INSERT INTO "tool_results" VALUES('default','weather',0,3,0,2,1);
INSERT INTO "tool_results" VALUES('default','weather',0,4,0,2,0);
INSERT INTO "tool_results" VALUES('default','weather',0,8,0,7,1);
INSERT INTO "tool_results" VALUES('default','weather',0,9,0,7,0);
INSERT INTO "tool_results" VALUES('default','weather',0,10,0,7,2);
INSERT INTO "tool_results" VALUES('default','changed',0,3,0,2,1);
INSERT INTO "tool_results" VALUES('default','changed',0,4,0,2,0);
INSERT INTO "tool_results" VALUES('acme','weather',0,3,0,2,1);
INSERT INTO "tool_results" VALUES('acme','weather',0,4,0,2,0);
INSERT INTO "tool_results" VALUES('acme','weather',0,8,0,7,1);
INSERT INTO "tool_results" VALUES('acme','weather',0,9,0,7,0);
INSERT INTO "tool_results" VALUES('acme','weather',0,10,0,7,2);
INSERT INTO "tool_results" VALUES('acme','changed',0,3,0,2,1);
INSERT INTO "tool_results" VALUES('acme','changed',0,4,0,2,0);
CREATE INDEX threads_tenant_id_user_id_active_at_thread_id_idx ON threads (tenant_id, user_id, active_at, thread_id);
CREATE INDEX threads_tenant_id_active_at_thread_id_idx ON threads (tenant_id, active_at, thread_id);
CREATE INDEX messages_run_id_idx ON messages (tenant_id, thread_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX erasures_tenant_id_kind_subject_idx ON erasures (tenant_id, kind, subject);
CREATE INDEX erasures_tenant_id_created_at_erasure_id_idx ON erasures (tenant_id, created_at, erasure_id);
CREATE INDEX branches_partial_idx ON branches (tenant_id, thread_id, branch) WHERE partial_seq IS NOT NULL;
CREATE INDEX feedback_tenant_id_created_at_feedback_id_idx ON feedback (tenant_id, created_at, feedback_id);
CREATE INDEX feedback_message_idx ON feedback (tenant_id, thread_id, branch, seq) WHERE thread_id IS NOT NULL;
CREATE INDEX feedback_user_idx ON feedback (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX threads_tenant_id_user_id_created_at_thread_id_idx ON threads (tenant_id, user_id, created_at, thread_id);
CREATE INDEX threads_tenant_id_created_at_thread_id_idx ON threads (tenant_id, created_at, thread_id);
CREATE UNIQUE INDEX messages_message_id_key ON messages (tenant_id, message_id, thread_id) WHERE message_id IS NOT NULL;
CREATE INDEX tool_results_call_idx ON tool_results (tenant_id, thread_id, call_branch, call_seq, call_idx, branch) WHERE call_seq IS NOT NULL;
CREATE INDEX revisions_message_id_idx ON revisions (tenant_id, thread_id, message_id) WHERE message_id IS NOT NULL;
CREATE VIEW transcript AS
SELECT m.tenant_id, m.thread_id, m.seq, m.role, m.name,
  coalesce(m.text, (
    SELECT group_concat(x, '') FROM (
      SELECT p.text AS x FROM message_parts p
      WHERE p.tenant_id = m.tenant_id AND p.thread_id = m.thread_id AND p.branch = m.branch AND p.seq = m.seq
        AND p.channel = 'content' AND p.kind = 'text'
      ORDER BY p.idx
    ) AS texts
  )) AS text,
  (
    SELECT group_concat(x, ', ') FROM (
      SELECT c.name AS x FROM tool_calls c
      WHERE c.tenant_id = m.tenant_id AND c.thread_id = m.thread_id AND c.branch = m.branch AND c.seq = m.seq
      ORDER BY c.idx
    ) AS names
  ) AS tool_names,
  m.run_id, 
    strftime('%Y-%m-%dT%H:%M:%S', (m.created_at - (m.created_at % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', (m.created_at % 1000000 + 1000000) % 1000000) AS created_at,
  t.user_id, m.message_id, m.branch, m.state
FROM threads t
JOIN branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN json_each(b.lineage) AS l
JOIN messages m ON m.tenant_id = t.tenant_id AND m.thread_id = t.thread_id AND m.branch = json_extract(l.value, '$[0]')
  AND m.seq >= json_extract(l.value, '$[1]') AND m.seq <= coalesce(json_extract(l.value, '$[2]'), m.seq);
CREATE VIEW calls AS
SELECT c.tenant_id, c.thread_id, c.branch, c.seq, c.idx, m.message_id, c.call_id, c.name, c.arguments,
  a.seq AS result_seq,
  coalesce(a.text, (
    SELECT group_concat(x, '') FROM (
      SELECT p.text AS x FROM message_parts p
      WHERE p.tenant_id = a.tenant_id AND p.thread_id = a.thread_id AND p.branch = a.branch AND p.seq = a.seq
        AND p.channel = 'content' AND p.kind = 'text'
      ORDER BY p.idx
    ) AS texts
  )) AS result,
  a.is_error, 
    strftime('%Y-%m-%dT%H:%M:%S', (m.created_at - (m.created_at % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', (m.created_at % 1000000 + 1000000) % 1000000) AS called_at, 
    strftime('%Y-%m-%dT%H:%M:%S', (a.created_at - (a.created_at % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', (a.created_at % 1000000 + 1000000) % 1000000) AS answered_at
FROM threads t
JOIN branches b ON b.tenant_id = t.tenant_id AND b.thread_id = t.thread_id AND b.branch = t.active_branch
CROSS JOIN json_each(b.lineage) AS l
JOIN tool_calls c ON c.tenant_id = t.tenant_id AND c.thread_id = t.thread_id AND c.branch = json_extract(l.value, '$[0]')
  AND c.seq >= json_extract(l.value, '$[1]') AND c.seq <= coalesce(json_extract(l.value, '$[2]'), c.seq)
JOIN messages m ON m.tenant_id = c.tenant_id AND m.thread_id = c.thread_id AND m.branch = c.branch
  AND m.seq = c.seq
LEFT JOIN tool_results r ON r.tenant_id = c.tenant_id AND r.thread_id = c.thread_id
  AND r.call_branch = c.branch AND r.call_seq = c.seq AND r.call_idx = c.idx
  AND EXISTS (
    SELECT 1 FROM json_each(b.lineage) AS p
    WHERE r.branch = json_extract(p.value, '$[0]') AND r.seq >= json_extract(p.value, '$[1]') AND r.seq <= coalesce(json_extract(p.value, '$[2]'), r.seq)
  )
LEFT JOIN messages a ON a.tenant_id = r.tenant_id AND a.thread_id = r.thread_id AND a.branch = r.branch
  AND a.seq = r.seq;
CREATE VIEW run_usage AS
SELECT r.tenant_id, r.run_id, r.thread_id, t.user_id, r.agent, r.model, r.status, r.input_tokens, r.output_tokens,
  r.total_tokens, CAST(r.cost AS REAL) AS cost, 
    strftime('%Y-%m-%dT%H:%M:%S', (r.started_at - (r.started_at % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', (r.started_at % 1000000 + 1000000) % 1000000) AS started_at, 
    strftime('%Y-%m-%dT%H:%M:%S', (r.ended_at - (r.ended_at % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', (r.ended_at % 1000000 + 1000000) % 1000000) AS ended_at,
  (r.ended_at - r.started_at) / 1000000.0 AS seconds
FROM runs r
JOIN threads t ON t.tenant_id = r.tenant_id AND t.thread_id = r.thread_id;
CREATE VIEW usage_by_day AS
SELECT d.tenant_id, d.day, d.user_id, d.agent, d.model, count(*) AS runs,
  CAST(sum(d.input_tokens) AS bigint) AS input_tokens, CAST(sum(d.output_tokens) AS bigint) AS output_tokens,
  CAST(sum(d.total_tokens) AS bigint) AS total_tokens, sum(d.cost) AS cost
FROM (
  SELECT r.tenant_id, strftime('%Y-%m-%d', (r.started_at - (r.started_at % 1000000 + 1000000) % 1000000) / 1000000, 'unixepoch') AS day, t.user_id, r.agent, r.model, r.input_tokens,
    r.output_tokens, r.total_tokens, CAST(r.cost AS REAL) AS cost
  FROM runs r
  JOIN threads t ON t.tenant_id = r.tenant_id AND t.thread_id = r.thread_id
) AS d
GROUP BY d.tenant_id, d.day, d.user_id, d.agent, d.model;
CREATE VIEW scores AS
SELECT f.tenant_id, f.feedback_id, f.run_id, r.thread_id, r.agent, r.model, f.key, f.score, f.author, f.source,
  
    strftime('%Y-%m-%dT%H:%M:%S', (f.created_at - (f.created_at % 1000000 + 1000000) % 1000000) / 1000000,
      'unixepoch') || printf('.%06dZ', (f.created_at % 1000000 + 1000000) % 1000000) AS created_at,
  coalesce(f.message_id, m.message_id) AS message_id, f.user_id, f.call_idx AS call_index
FROM (
  SELECT s.tenant_id, s.feedback_id, s.run_id, s.key, s.score, s.author, s.source, s.created_at, s.message_id,
    s.user_id, s.call_idx, s.retracted_at, s.thread_id, s.branch, s.seq,
    row_number() OVER (
      PARTITION BY s.tenant_id, s.run_id, s.branch, s.seq, s.call_idx, s.key, s.user_id
      ORDER BY s.created_at DESC, s.feedback_id DESC
    ) AS recency
  FROM feedback s
) AS f
JOIN runs r ON r.tenant_id = f.tenant_id AND r.run_id = f.run_id
LEFT JOIN messages m ON m.tenant_id = f.tenant_id AND m.thread_id = f.thread_id AND m.branch = f.branch
  AND m.seq = f.seq
WHERE f.recency = 1 AND f.retracted_at IS NULL;
COMMIT;
