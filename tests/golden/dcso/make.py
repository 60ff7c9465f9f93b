import subprocess,os,struct,json
B='/usr/bin/bloom'
out={'program':'bloom 0.2.4 (Debian golang-github-dcso-bloom-cli 0.2.4-3+b5)','filters':[]}
def run(*a,inp=b''): return subprocess.run([B,*a],input=inp,check=True,capture_output=True).stdout
for n,p,cnt,data in [(1,.5,1,''),(10,.01,10,''),(5,.1,20,''),(20,.001,7,'hello\n'),(100,.01,100,''),(63,1e-9,30,'')]:
    if os.path.exists('o.bloom'): os.remove('o.bloom')
    run('create','-p',repr(p),'-n',str(n),'o.bloom')
    run('insert','o.bloom',inp=b''.join(b'item %d\n'%i for i in range(cnt)))
    if data: run('set-data','o.bloom',inp=data.encode())
    asked=b''.join(b'item %d\n'%i for i in range(400))
    found=run('check','o.bloom',inp=asked).decode().split('\n')[:-1]
    out['filters'].append({'capacity':n,'rate':p,'inserted':cnt,'data':data,'file_hex':open('o.bloom','rb').read().hex(),'found_of_400':[int(x.split()[1]) for x in found]})
out['plans']=[]
for n in [1,7,100,12345,100000]:
    for p in [.5,.1,.01,.001,1e-6]:
        if os.path.exists('o.bloom'): os.remove('o.bloom')
        run('create','-p',repr(p),'-n',str(n),'o.bloom')
        v,nn,pp,k,m,N=struct.unpack('<QQdQQQ',open('o.bloom','rb').read()[:48])
        out['plans'].append({'items':n,'rate':p,'bits':m,'probes':k})
# join
for f,r in [('a.bloom',range(0,5)),('b.bloom',range(3,9))]:
    if os.path.exists(f): os.remove(f)
    run('create','-p','0.01','-n','10',f); run('insert',f,inp=b''.join(b'item %d\n'%i for i in r))
a=open('a.bloom','rb').read().hex(); b=open('b.bloom','rb').read().hex()
run('join','a.bloom','b.bloom')
out['join']={'first_hex':a,'second_hex':b,'joined_hex':open('a.bloom','rb').read().hex()}
json.dump(out,open('dcso.json','w'),indent=1)
